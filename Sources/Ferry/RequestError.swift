// The front of the package.
