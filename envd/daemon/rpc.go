package daemon

import "connectrpc.com/connect"

// minCompressed spares small answers the compression that Node always asks for.
const minCompressed = 1 << 10

func rpcOptions() []connect.HandlerOption {
	return []connect.HandlerOption{
		connect.WithCodec(jsonCodec{}),
		connect.WithInterceptors(turns{}),
		withGzip(),
		connect.WithCompressMinBytes(minCompressed),
	}
}
