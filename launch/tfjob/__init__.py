"""TFJob manifests of Kubeflow's training operator: from one to a hosts file, and back.

replica_container  the container of a replica: its command, environment and resources, in Kubernetes' notation
manifest_reader    the TFJob in a file of several YAML documents, its values, and all that nobody has read
jobs               a TFJob as roles, or all that is wrong with it
hosts_file         which host each task gets, and the text of a hosts file for a TFJob
manifests          a manifest from a spec, with the placeholders that are the same for every task of a role
"""
