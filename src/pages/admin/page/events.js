import { byId, make } from '../../web/dom.js'

/** @import { GatewayEvent } from '../../../metrics/schema.js' */

const MAX = 100
const clock = new Intl.DateTimeFormat('en', {
  hour: '2-digit',
  minute: '2-digit',
  second: '2-digit',
  hourCycle: 'h23',
})

/** Events of the gateway, newest first. */
export class Events {
  #list = byId('events')

  /** @param {GatewayEvent[]} events oldest first; they replace those shown */
  reset(events) {
    this.#list.replaceChildren()
    if (events.length === 0) this.#list.append(make('li', 'empty', 'Nothing has happened yet.'))
    this.add(events)
  }

  /** @param {GatewayEvent[]} events oldest first */
  add(events) {
    const list = this.#list
    for (const { time, level, text } of events) {
      if (list.firstElementChild?.className === 'empty') list.firstElementChild.remove()
      const when = make('time', '', clock.format(time))
      when.setAttribute('datetime', new Date(time).toISOString())
      list.prepend(make('li', level, when, make('span', 'level', level), make('span', 'text', text)))
    }
    while (list.childElementCount > MAX) list.lastElementChild?.remove()
  }
}
