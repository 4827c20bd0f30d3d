# An image of a node. Clients connect to port 8000; server API, admin page, metrics and health are on port 8001.
# docs/deployment.md says how to run it. The distribution's C library is one for which uWebSockets.js has binaries
# (README, "Where uWebSockets.js comes from").
FROM node:24-trixie-slim AS build
WORKDIR /halley
COPY package.json package-lock.json ./
# uWebSockets.js comes with binaries of all platforms: only that of this one stays.
RUN npm ci --omit=dev --omit=peer --ignore-scripts \
  && find node_modules/uWebSockets.js -name 'uws_*.node' \
    ! -name "uws_linux_$(node -p 'process.arch')_$(node -p 'process.versions.modules').node" -delete
COPY . .

FROM node:24-trixie-slim
ENV NODE_ENV=production \
  HALLEY_HTTP_SERVER_ADDRESS=0.0.0.0 \
  HALLEY_HTTP_SERVER_PORT=8000 \
  HALLEY_HTTP_SERVER_INTERNAL_PORT=8001 \
  HALLEY_HEALTH_ENABLED=true
COPY --from=build /halley /halley
WORKDIR /halley
USER 1000:1000
EXPOSE 8000 8001
# A clean end: clients are told to reconnect. Give it more time than shutdown.timeout: docker stop --time 45.
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=15s --timeout=5s --start-period=30s --retries=3 \
  CMD ["node", "-e", "const { HALLEY_HTTP_SERVER_INTERNAL_PORT: internal, HALLEY_HTTP_SERVER_PORT: port } = process.env; const ask = (scheme, otherwise) => require(`node:${scheme}`).get({ host: '127.0.0.1', port: +internal || port, path: '/health', rejectUnauthorized: false }, ({ statusCode }) => process.exit(statusCode === 200 ? 0 : 1)).on('error', otherwise); ask('https', () => ask('http', () => process.exit(1)))"]
ENTRYPOINT ["node", "--expose-gc", "--max-semi-space-size=2", "/halley/bin/halley.js"]
CMD ["serve"]
