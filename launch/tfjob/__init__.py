"""TFJob manifests of Kubeflow's training operator: from one to a hosts file, and back.

expansion    ``$(NAME)`` in the words of a container, as Kubernetes expands it
quantities   numbers with Kubernetes' suffixes: ``500m``, ``4Gi``
documents    the TFJob in a file of several YAML documents
reader       the values of a manifest, and all that nobody has read
containers   the container of a replica: its command, environment and resources
jobs         a TFJob as roles, or all that is wrong with it
hosts        which host each task gets
hosts_file   the text of a hosts file for a TFJob
templates    placeholders in a command that are the same for every task of a role
manifests    a manifest from a spec
"""
