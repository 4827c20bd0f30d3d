// Tells drones their settings, and waits for what they say to them.

import { some } from './launch.js'

/** @typedef {import('./drone.js').Drone} Drone */

/** ms that a drone may take to answer. */
const PATIENCE = 10_000

/**
 * @typedef {object} Told
 * @property {string[]} refusals a line each
 * @property {string[]} silent those that are up and did not answer, a line each
 */

/**
 * Those that publish are told last: by then the others know since when nothing may be missing.
 *
 * @param {Drone[]} drones
 * @param {(drone: Drone) => {revision: number, settings: import('../schema.js').Settings | undefined}} messageOf
 * @returns {Promise<Told>} when all that are up have answered, or have had the time to
 */
export async function tell(drones, messageOf) {
  /** @type {Map<string, string[]>} what was said -> by whom */
  const refusals = new Map()
  /** @type {string[]} */
  const silent = []
  const told = drones
    .filter(drone => drone.up)
    .map(drone => ({ drone, ...messageOf(drone) }))
    .filter(({ settings }) => settings !== undefined)
  for (const publishes of [false, true]) {
    const wave = told.filter(({ settings }) => (settings?.publish !== null) === publishes)
    const answers = await Promise.all(
      wave.map(({ drone, revision, settings }) => answerOf(drone, { type: 'settings', revision, settings })),
    )
    answers.forEach((answer, i) => {
      const { id } = wave[i].drone
      if (answer === SILENT) silent.push(id)
      else if (answer !== '') refusals.set(answer, [...(refusals.get(answer) ?? []), id])
    })
  }
  return {
    refusals: [...refusals].map(
      ([text, ids]) => `${some(inOrder(ids, drones))} ${ids.length > 1 ? 'refuse' : 'refuses'}: ${text}`,
    ),
    silent: silent.length > 0 ? [`${some(silent)} did not answer within ${PATIENCE / 1000} s`] : [],
  }
}

/**
 * @param {string[]} ids
 * @param {Drone[]} drones
 * @returns {string[]} in the drones' order, whoever publishes
 */
const inOrder = (ids, drones) => drones.map(({ id }) => id).filter(id => ids.includes(id))

const SILENT = Symbol('silent')

/**
 * @param {Drone} drone
 * @param {{type: string, [field: string]: any}} message
 * @returns {Promise<string | typeof SILENT>} '': it agrees, or its line is gone and it will be told when it is back
 */
async function answerOf(drone, message) {
  const { link } = drone
  if (link === null) return ''
  /** @type {NodeJS.Timeout | undefined} */
  let timer
  const over = new Promise(resolve => {
    timer = setTimeout(() => resolve(SILENT), PATIENCE)
  })
  const answer = drone.request(message).then(
    () => '',
    /** @param {Error} error */ error => (link.reason === '' ? error.message : ''),
  )
  const first = await Promise.race([answer, /** @type {Promise<typeof SILENT>} */ (over)])
  clearTimeout(timer)
  return first
}
