# kith in a container: docs/operations.md, "Containers", says how it is run. Build it from a clean checkout:
#   docker build --tag kith .
# Without the embedded PostgreSQL (60 MB less), for those who set DATABASE_URL:
#   docker build --build-arg EMBEDDED=no --tag kith .
ARG NODE=24.21.0

FROM node:${NODE}-bookworm-slim AS modules
WORKDIR /opt/kith
COPY package.json package-lock.json .npmrc ./
COPY client/package.json client/
COPY console/package.json console/prepare.js console/
COPY transfer/package.json transfer/
ARG EMBEDDED=yes
RUN npm ci --omit=dev $(test "$EMBEDDED" = yes || echo --omit=optional)

# The console is built with development packages, of which none goes into the image.
FROM node:${NODE}-bookworm-slim AS console
WORKDIR /opt/kith
COPY package.json package-lock.json .npmrc tsconfig.json ./
COPY client client
# The pages run the rules of kith import and kith export, and print a dossier as kith dossier does.
COPY src src
COPY cli cli
COPY transfer transfer
COPY console console
RUN npm ci --ignore-scripts && npm run build --workspace console

FROM node:${NODE}-bookworm-slim
# What the command line can do, an attacker can do too: npm and yarn are of no use at run time.
RUN rm -rf /usr/local/lib/node_modules /opt/yarn-* /usr/local/bin/npm /usr/local/bin/npx /usr/local/bin/corepack \
    /usr/local/bin/yarn /usr/local/bin/yarnpkg \
  && ln -s /opt/kith/ops/kith /usr/local/bin/kith \
  && install -d -o node -g node -m 700 /var/lib/kith
WORKDIR /opt/kith
COPY --from=modules /opt/kith/node_modules node_modules
COPY --from=console /opt/kith/console/dist console/dist
COPY package.json LICENSE ./
COPY migrations migrations
COPY client client
COPY src src
COPY transfer transfer
COPY cli cli
COPY scripts/healthcheck.ts scripts/
COPY --chmod=755 ops/kith ops/

# Everything but the data folder and /tmp may be read only. The host is every address of the container's own network:
# the start refuses it until TLS_CERT_FILE and TLS_KEY_FILE, or KITH_BEHIND_PROXY, say how TLS is done.
ENV HOST=0.0.0.0 PORT=8080 KITH_DATA_DIR=/var/lib/kith
USER node
VOLUME /var/lib/kith
EXPOSE 8080
STOPSIGNAL SIGTERM
# Is the process alive, not is the database: an orchestrator that replaces unhealthy containers must not do so in an outage.
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s --retries=3 CMD ["node", "/opt/kith/scripts/healthcheck.ts"]
ENTRYPOINT ["kith"]
CMD ["serve"]
