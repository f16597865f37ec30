"""Where the processor's time goes at saturation: by process, by function, and as flame graphs (`make profile`)."""
