import { byId } from '../../web/dom.js'

/** @typedef {'live' | 'channels' | 'users' | 'nodes'} View */

const VIEWS = /** @type {View[]} */ (['live', 'channels', 'users', 'nodes'])

/** @returns {View} */
const chosen = () => VIEWS.find(view => location.hash === `#${view}`) ?? 'live'

/**
 * Shows the view that the address names.
 * @param {(view: View) => void} onShow @returns {() => void} to be called when the page is ready
 */
export function listenForTabs(onShow) {
  const show = () => {
    const view = chosen()
    for (const name of VIEWS) byId(`view-${name}`).hidden = name !== view
    for (const link of byId('tabs').querySelectorAll('a')) {
      if (link.hash === `#${view}`) link.setAttribute('aria-current', 'page')
      else link.removeAttribute('aria-current')
    }
    onShow(view)
  }
  addEventListener('hashchange', show)
  return show
}
