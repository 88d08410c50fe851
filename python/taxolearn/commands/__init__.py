"""What the commands of the command line do; each is imported when it is called."""
