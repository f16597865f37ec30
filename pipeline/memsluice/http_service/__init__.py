"""What the gate's HTTP services share: who asks, how often, what a failure is answered, and whether they are ready."""
