"""Images of containers: files, which apptainer runs, and names, which podman and docker look up."""


def is_file(image: str) -> bool:
    """Return whether an image is the path of a file or folder, else a name."""
    return image.startswith(("/", "~"))
