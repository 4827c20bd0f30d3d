import { makeFolder as make } from '../../src/doctor/index.js'
import { reasonOf, replaceFile } from '../files.js'
import { RunError } from './target.js'

/** Writes a file atomically. @param {string} file @param {string} text @throws {RunError} */
export const writeWhole = (file, text) =>
  replaceFile(file, text).catch(error => {
    throw new RunError(`${file}: cannot be written: ${reasonOf(error)}`)
  })

/** @param {string} folder created if necessary @throws {RunError} */
export const makeFolder = folder =>
  make(folder).catch(error => {
    throw new RunError(`${folder}: cannot be made: ${reasonOf(error)}`)
  })
