"""Shows and checks the files of a log directory, without a broker: what `odradek dump-log` is made of."""
