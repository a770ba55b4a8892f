"""Pass on what Dynamo's workers tell the router, on this machine only: python event_broker.py XSUB_PORT XPUB_PORT

Dynamo's event plane is ZeroMQ. Left alone, every worker opens ports of its own for it, on all networks (ai-dynamo
1.6.1: DYN_EVENT_PLANE_HOST changes the address that it announces, not the one that it listens on). With a broker,
named in DYN_ZMQ_BROKER_URL, workers and router only connect, and the two ports of the broker are all that is open.
Run it with the Python of a Dynamo environment, which has pyzmq.
"""

import sys

import zmq


def main(publishers: str, subscribers: str) -> None:
    context = zmq.Context()
    incoming, outgoing = context.socket(zmq.XSUB), context.socket(zmq.XPUB)
    incoming.bind(f"tcp://127.0.0.1:{publishers}")
    outgoing.bind(f"tcp://127.0.0.1:{subscribers}")
    zmq.proxy(incoming, outgoing)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit("usage: python event_broker.py XSUB_PORT XPUB_PORT")
    main(*sys.argv[1:])
