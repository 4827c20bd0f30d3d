# A distribution whose C library the binaries of uWebSockets.js for this Node.js were made for (README, "Requirements").
FROM node:22-trixie-slim
WORKDIR /halley
COPY package.json package-lock.json ./
RUN npm ci --omit=dev
COPY . .
USER node
EXPOSE 8000
CMD ["node", "--expose-gc", "--max-semi-space-size=2", "bin/halley.js", "serve"]
