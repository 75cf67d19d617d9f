package main

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/isthmus/isthmus/server/certificate"
	"github.com/isthmus/isthmus/server/config"
)

func tlsCommand(where *location) *cobra.Command {
	cmd := &cobra.Command{Use: "tls", Short: "Make a certificate where no public authority can"}
	cmd.AddCommand(tlsInit(where))
	return cmd
}

func tlsInit(where *location) *cobra.Command {
	var domain string
	var force bool
	cmd := &cobra.Command{
		Use: "init", Short: "Make an authority and a certificate of the domain and its wildcard, in the data folder", Args: cobra.NoArgs,
		Long: "Makes an authority of your own and a certificate of DOMAIN, *.DOMAIN and localhost, and keeps them in the\n" +
			"folder tls of the data folder, where `isthmus serve` finds them. Clients have to be told of the authority.\n" +
			"What is still good is kept, so it may run as often as you like; a running server takes up a new\n" +
			"certificate by itself. For a domain of the public internet a certificate of a public authority is better:\n" +
			"name its files under tls in the configuration.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := where.read()
			if err != nil {
				return err
			}
			if domain != "" {
				c.Domain = domain
			}
			if c.Domain == "" {
				return errors.New("name the domain: `isthmus tls init --domain sandbox.example.com`, or set domain in the configuration")
			}
			if err := c.Check(); err != nil {
				return err
			}
			if !strings.Contains(c.Domain, ".") {
				return fmt.Errorf("clients accept no wildcard below a name without a dot: instead of %s take, for example, isthmus.%s", c.Domain, c.Domain)
			}
			return initTLS(cmd.OutOrStdout(), c, force)
		},
	}
	cmd.Flags().StringVar(&domain, "domain", "", "the domain (default: that of the configuration)")
	cmd.Flags().BoolVar(&force, "force", false, "make everything anew, the authority too")
	return cmd
}

// initTLS makes the files, and says what was made and what to do with it.
func initTLS(out io.Writer, c config.Config, force bool) error {
	files, made, err := certificate.Make(tlsFolder(c), c.Domain, force, time.Now())
	if err != nil {
		return err
	}
	switch {
	case made.Authority:
		fmt.Fprintf(out, "# made an authority and a certificate of %s in %s\n", c.Domain, tlsFolder(c))
	case made.Certificate:
		fmt.Fprintf(out, "# made a new certificate of %s; the authority is the same, clients need nothing new\n", c.Domain)
	default:
		fmt.Fprintf(out, "# nothing to do: the certificate of %s is good\n", c.Domain)
	}
	authority, bundle, err := absolute(files)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "\n# serve with it:\nisthmus serve --domain %s --listen 0.0.0.0:443\n", c.Domain)
	fmt.Fprintf(out, "\n# clients, of any version, on a machine where %s and *.%s resolve to the server:\n", c.Domain, c.Domain)
	fmt.Fprintf(out, "export E2B_DOMAIN=%s\n", c.Domain)
	fmt.Fprintf(out, "export NODE_EXTRA_CA_CERTS=%s   # JavaScript\n", quoted(authority))
	fmt.Fprintf(out, "export SSL_CERT_FILE=%s   # Python, curl: the system's authorities and this one\n", quoted(bundle))
	return nil
}

// tlsFolder is where the data folder keeps its own certificate.
func tlsFolder(c config.Config) string { return filepath.Join(c.Data, "tls") }

// absolute are the files that clients are told of, from wherever they are started.
func absolute(files certificate.Files) (authority, bundle string, err error) {
	if authority, err = filepath.Abs(files.Authority); err != nil {
		return "", "", err
	}
	bundle, err = filepath.Abs(files.Bundle)
	return authority, bundle, err
}

// useOwnCertificate serves a configured domain with the certificate of `tls init`, when there is one and the
// configuration names no other.
func useOwnCertificate(c *config.Config) error {
	if c.Domain == "" || c.TLS.Cert != "" || c.TLS.Key != "" {
		return nil
	}
	files, err := certificate.Find(tlsFolder(*c), c.Domain, time.Now())
	if errors.Is(err, certificate.ErrNone) {
		return nil
	}
	if err != nil {
		return err
	}
	c.TLS.Cert, c.TLS.Key = files.Certificate, files.Key
	return nil
}
