"""What a node does: sockets, files, clocks and tasks around the deciding code of `coordinator`."""
