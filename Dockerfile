# kith in a container: docs/operations.md, "Containers", says how it is run. Build it from a clean checkout:
#   docker build --tag kith .
#   docker buildx build --platform linux/amd64,linux/arm64 --tag kith .
# Without the embedded PostgreSQL (60 MB less), for those who set DATABASE_URL:
#   docker build --build-arg EMBEDDED=no --tag kith .
# A release pins the base by its digest: --build-arg BASE=node:24.21.0-bookworm-slim@sha256:…
ARG BASE=node:24.21.0-bookworm-slim

# The packages are the same for every platform, so they are built once, on that of the machine.
FROM --platform=$BUILDPLATFORM ${BASE} AS packages
WORKDIR /source
COPY package.json package-lock.json .npmrc ./
COPY client/package.json client/
COPY console/package.json console/prepare.js console/
COPY transfer/package.json transfer/
RUN npm ci --ignore-scripts
COPY . .
RUN node scripts/pack.ts /packages && rm /packages/kith-client-*.tgz

FROM ${BASE} AS installed
WORKDIR /opt/kith
COPY --from=packages /packages /packages
ARG EMBEDDED=yes
RUN npm install --no-audit --no-fund $(test "$EMBEDDED" = yes || echo --omit=optional) /packages/kith-*.tgz

FROM ${BASE}
# What the command line can do, an attacker can do too: npm and yarn are of no use at run time.
RUN rm -rf /usr/local/lib/node_modules /opt/yarn-* /usr/local/bin/npm /usr/local/bin/npx /usr/local/bin/corepack \
    /usr/local/bin/yarn /usr/local/bin/yarnpkg \
  && ln -s /opt/kith/node_modules/kith/ops/kith /usr/local/bin/kith \
  && install -d -o node -g node -m 700 /var/lib/kith
COPY --from=installed /opt/kith/node_modules /opt/kith/node_modules

# Everything but the data folder and /tmp may be read only. The host is every address of the container's own network:
# the start refuses it until TLS_CERT_FILE and TLS_KEY_FILE, or KITH_BEHIND_PROXY, say how TLS is done.
ENV HOST=0.0.0.0 PORT=8080 KITH_DATA_DIR=/var/lib/kith
USER node
VOLUME /var/lib/kith
EXPOSE 8080
STOPSIGNAL SIGTERM
# Is the process alive, not is the database: an orchestrator that replaces unhealthy containers must not do so in an outage.
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s --retries=3 CMD ["node", "/opt/kith/node_modules/kith/scripts/healthcheck.js"]
ENTRYPOINT ["kith"]
CMD ["serve"]
