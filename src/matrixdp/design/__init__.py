"""A page in the browser on which a release is designed before anything is spent."""
