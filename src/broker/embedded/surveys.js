/** Seconds that a worker may take to answer. */
const MAX_TICKS = 5

/**
 * @template L
 * @typedef {object} Survey
 * @property {L} link who asked
 * @property {number} request its number there
 * @property {Set<L>} missing who has not answered yet
 * @property {string[]} answers JSON texts
 * @property {boolean} complete whether everybody still alive has answered
 * @property {number} ticks
 */

/**
 * Questions to all workers, and their answers.
 * @template L
 */
export class Surveys {
  /** @type {Map<number, Survey<L>>} */
  #open = new Map()
  #last = 0

  /**
   * @param {L} link
   * @param {number} request
   * @param {Iterable<L>} asked
   * @returns {number} the survey's number
   */
  start(link, request, asked) {
    const number = (this.#last = (this.#last + 1) >>> 0)
    this.#open.set(number, { link, request, missing: new Set(asked), answers: [], complete: true, ticks: 0 })
    return number
  }

  /**
   * @param {L} link
   * @param {import('./frames.js').FrameCursor} cursor
   * @param {(survey: Survey<L>) => void} done
   */
  told(link, cursor, done) {
    const number = cursor.u32()
    const survey = this.#open.get(number)
    if (!survey?.missing.delete(link)) return
    const answer = cursor.string()
    if (answer === '') survey.complete = false
    else survey.answers.push(answer)
    if (survey.missing.size === 0) this.#finish(number, survey, done)
  }

  /**
   * @param {number} number
   * @param {Survey<L>} survey
   * @param {(survey: Survey<L>) => void} done
   */
  #finish(number, survey, done) {
    this.#open.delete(number)
    done(survey)
  }

  /**
   * A worker that has died has nothing to tell any more.
   * @param {L} link
   * @param {(survey: Survey<L>) => void} done
   */
  removeLink(link, done) {
    for (const [number, survey] of this.#open) {
      if (survey.missing.delete(link) && survey.missing.size === 0) this.#finish(number, survey, done)
    }
  }

  /**
   * To be called once a second.
   * @param {(survey: Survey<L>) => void} done
   */
  tick(done) {
    for (const [number, survey] of this.#open) {
      if (++survey.ticks <= MAX_TICKS) continue
      survey.complete = false
      this.#finish(number, survey, done)
    }
  }
}
