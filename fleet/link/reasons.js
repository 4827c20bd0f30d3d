/** Why an address cannot be opened or dialled, by the code of the error. @type {Readonly<Record<string, string>>} */
export const REASONS = Object.freeze({
  EADDRINUSE: 'the address is in use',
  EADDRNOTAVAIL: 'not an address of this machine',
  EACCES: 'requires privileges',
  ENOTFOUND: 'unknown host',
  EAI_AGAIN: 'unknown host',
})
