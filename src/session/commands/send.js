import { disconnects } from '../../errors.js'

/** Asynchronous messages to the server: nothing takes them. */
export function send() {
  throw disconnects.notAvailable
}
