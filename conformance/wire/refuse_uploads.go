package wire

import "strings"

// refusedUploads is bodies and targets that /files must not take.
func refusedUploads(s *Suite) []refusal {
	var rows []refusal
	add := func(name string, c call, message string, codes ...int) {
		rows = append(rows, refusal{name: name, call: c, status: codes, message: message})
	}
	raw := func(query, contentType, body string) call {
		c := s.envd("POST", "/files"+query, body)
		c.header.Set("Content-Type", contentType)
		return c
	}
	const octets, target = "application/octet-stream", "?path=/home/user/intruder"
	part := "--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"/home/user/intruder\"\r\n\r\nx\r\n"

	add("octets without a path", raw("", octets, "x"), "path query parameter is required", 400)
	add("a type that is not taken", raw(target, "text/plain", "x"), "unsupported content type", 400)
	add("JSON", raw(target, "application/json", `{"file":"x"}`), "unsupported content type", 400)
	add("a form without a boundary", raw("", "multipart/form-data", part+"--b--\r\n"), "error parsing multipart form", 500)
	add("a part without a name for its file", raw("", "multipart/form-data; boundary=b", "--b\r\nContent-Disposition: form-data; name=\"file\"\r\n\r\nx\r\n--b--\r\n"), "filename not found", 400)
	add("a form with another boundary", raw("", "multipart/form-data; boundary=c", part+"--b--\r\n"), "", 500)
	add("an empty form body", raw("", "multipart/form-data; boundary=b", ""), "", 500)
	add("a folder for a target", s.uploadForm("?path=/home/user/canary", "f", "x"), "path is a directory: /home/user/canary", 400)
	add("a folder for the target of octets", raw("?path=/home/user/canary", octets, "x"), "path is a directory: /home/user/canary", 400)
	add("a target below a file", raw("?path=/home/user/canary/file/below", octets, "x"), "path is a file: /home/user/canary/file", 500)
	add("a home of somebody else", raw("?path=~nobody/x", octets, "x"), "", 400)
	add("an unknown user", raw(target+"&username=nobody-there", octets, "x"), "nobody-there", 401)
	add("an unknown user in a form", s.uploadForm(target+"&username=nobody-there", "f", "x"), "nobody-there", 401)
	add("the daemon's own memory", raw("?path=/proc/1/mem", octets, "x"), "", 400, 403, 404, 500)
	add("the daemon's own folder", raw("?path=/proc/self/root/home/user/intruder", octets, "x"), "", 400, 403, 404)

	brotli := raw(target, octets, "x")
	brotli.header.Set("Content-Encoding", "br")
	add("an encoding that is not taken", brotli, "unsupported Content-Encoding: br", 400)
	notPacked := raw(target, octets, "this is not gzip")
	notPacked.header.Set("Content-Encoding", "gzip")
	add("gzip that is none", notPacked, "", 400)
	packedForm := s.uploadForm(target, "f", "x")
	packedForm.header.Set("Content-Encoding", "gzip")
	add("a form that is not packed though it says so", packedForm, "", 400)

	metadata := func(name, key, value string) {
		c := raw(target, octets, "x")
		c.header["X-Metadata-"+key] = []string{value}
		add(name, c, "invalid metadata", 400)
	}
	metadata("metadata outside ASCII", "k", "ü")
	metadata("metadata with a key that is too long", strings.Repeat("k", 247), "v")
	metadata("metadata that is too large", "k", strings.Repeat("v", 4096))

	read := func(name, query, message string, codes ...int) {
		add(name, s.envd("GET", "/files"+query, ""), message, codes...)
	}
	read("reading what is not there", "?path=/home/user/missing", "path '/home/user/missing' does not exist", 404)
	read("reading a folder", "?path=/home/user/canary", "path '/home/user/canary' is a directory", 400)
	read("reading as an unknown user", "?path=/etc/hostname&username=nobody-there", "nobody-there", 401)
	read("reading the daemon's environment", "?path=/proc/1/environ", "", 400, 403, 404, 500)
	method := s.envd("PUT", "/files"+target, "x")
	rows = append(rows, refusal{name: "a method that is not served", call: method, status: status(405), wordless: true})
	return rows
}
