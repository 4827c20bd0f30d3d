/** A command line that means nothing. */
export class UsageError extends Error {}
