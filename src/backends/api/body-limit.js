/** Largest body of a request, bytes: room for the largest broadcast, but not for what could stop a worker. */
export const MAX_BODY = 16 * 1024 * 1024
