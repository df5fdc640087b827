"""TFJob manifests of Kubeflow's training operator: convert a manifest into a hosts file, and back.

replica_container  the container of a replica: its command, environment and resources, in Kubernetes' notation
manifest_reader    the TFJob in a file of several YAML documents, its values, and the values not read
jobs               a TFJob as roles, or all its problems
hosts_file         the host of each task, and the text of a hosts file for a TFJob
manifests          a manifest from a spec, with placeholders filled in for all tasks of a role
"""
