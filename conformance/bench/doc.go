// Package bench measures servers that speak E2B's protocols, side by side in one run. Nothing in it knows how a
// server was started: a Target says how one is reached and which processes serve it. What is compared is measured in
// turns, one call here, one call there, so that whatever else the machine does meets all of them alike.
package bench
