// Package harness runs the conformance suites against a real Isthmus on the local backend, in a small world of
// their own: a process, mount and network namespace with an internet beside it, made of a name server, a web
// server and a package server. Nothing of the host is edited, and whatever a failing case leaves running dies
// with the world.
//
// ISTHMUS_TEST chooses the part: main (also without it), clients or soak; vercel, daytona and modal are what clients has of
// that vendor, bare all suites on boxes that know nothing of envd, of which soak has some. Cases of another part are not
// listed.
// ISTHMUS_TEST_SANDBOXES is the number of sandboxes per program of the leak case, ISTHMUS_TEST_CRASHES how often the
// facade is killed while creates fail over, ISTHMUS_TEST_KILLS how often while clients work,
// ISTHMUS_TEST_WATCHES, ISTHMUS_TEST_COMMANDS and ISTHMUS_TEST_MADE how many watches, commands and sandboxes must leave
// nothing, ISTHMUS_TEST_IMAGES a folder
// of images that have been built before. Linux, and root, are needed.
package harness
