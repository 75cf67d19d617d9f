# An example of a template: any image with bash and a user named user. sudo in sandboxes is ours, set-user-id.
#   docker build -f deploy/images/base.Dockerfile -t isthmus-base .
FROM debian:12-slim
RUN apt-get update && apt-get install -y --no-install-recommends bash ca-certificates curl git python3 python3-pip nodejs npm procps \
 && rm -rf /var/lib/apt/lists/* && useradd --uid 1000 --user-group --create-home --shell /bin/bash user
COPY --chmod=4755 bin/sudo /usr/bin/sudo
