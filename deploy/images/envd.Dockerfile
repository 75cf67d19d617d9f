# What gets into sandboxes: mounted as a volume, or copied by an init container (`envd install`). Nothing else is in it.
#   docker build -f deploy/images/envd.Dockerfile -t isthmus-envd .
FROM scratch
COPY bin/envd /envd
ENTRYPOINT ["/envd"]
