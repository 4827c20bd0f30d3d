import { LIMITS } from '../../../metrics/limits.js'

/** @param {keyof typeof LIMITS} limit @returns {(value: number) => 'good' | 'warn' | 'bad'} a class */
export const healthBy = limit => value => {
  const [warn, bad] = LIMITS[limit]
  return value < warn ? 'good' : value < bad ? 'warn' : 'bad'
}

/** The same, but '' for good. @param {keyof typeof LIMITS} limit @returns {(value: number) => '' | 'warn' | 'bad'} */
export const alarmBy = limit => {
  const health = healthBy(limit)
  return value => {
    const state = health(value)
    return state === 'good' ? '' : state
  }
}
