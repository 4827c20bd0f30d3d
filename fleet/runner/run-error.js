/** Why a run cannot be made, or not go on; the message is one line. */
export class RunError extends Error {}
