"""TFJob manifests of Kubeflow's training operator: convert a manifest into a hosts file, and back.

replica_container  the container of a replica: its command, environment and resources, in Kubernetes' notation
manifest_reader    the TFJob in a file of several YAML documents; the values that were read and not read
jobs               the roles of a TFJob, or all its problems
hosts_file         the host of each task, and the text of a hosts file for a TFJob
manifests          a manifest from a spec, with placeholders replaced by the values for a role
"""
