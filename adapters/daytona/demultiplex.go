package daytona

// The labels of a stream of logs. Three bytes of a label say that what follows is of that output.
const (
	markOut = 0x01
	markErr = 0x02
	// markSize is how many bytes of a label make a mark.
	markSize = 3
)

// demultiplexer reads one of the two outputs of a stream of logs. It is a stream of bytes: frames end anywhere, also
// within a mark. What comes before the first mark is of the standard output, as of servers that make no marks.
type demultiplexer struct {
	next  func() ([]byte, error)
	label byte // the output that is read

	current byte // of which output the bytes are
	run     byte // the label that was seen last
	count   int  // how often, without a break
	rest    []byte
}

// Read reads the output.
func (d *demultiplexer) Read(b []byte) (int, error) {
	for {
		for len(d.rest) == 0 {
			frame, err := d.next()
			if err != nil {
				return 0, err
			}
			d.rest = frame
		}
		n := 0
		for len(d.rest) > 0 && n < len(b) {
			if kept := d.take(d.rest[0]); kept {
				b[n] = d.rest[0]
				n++
			}
			d.rest = d.rest[1:]
		}
		if n > 0 {
			return n, nil
		}
	}
}

// take says whether a byte is of the output. Bytes of labels never are: what is carried here has none of its own.
func (d *demultiplexer) take(c byte) bool {
	if c != markOut && c != markErr {
		d.count = 0
		return d.current == 0 && d.label == markOut || d.current == d.label
	}
	if c != d.run {
		d.run, d.count = c, 0
	}
	if d.count++; d.count == markSize {
		d.current, d.count = c, 0
	}
	return false
}
