# The facade: one static program, no shell, an ordinary user. Build from the repository's top, after `make build`:
#   docker build -f deploy/images/isthmus.Dockerfile -t isthmus .
FROM gcr.io/distroless/static-debian12:nonroot
COPY bin/isthmus /isthmus
USER 65532:65532
EXPOSE 3000 3001
ENTRYPOINT ["/isthmus"]
