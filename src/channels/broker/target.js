/**
 * Which subscribers receive a publication: all except one connection (`excludeClient`) and one user (`excludeUser`), '':
 * none; or with `users` only their connections, null: all.
 * @typedef {{excludeClient: string, excludeUser: string, users: readonly string[] | null}} Target
 */

/**
 * @param {Target} target @param {string} user '' = anonymous @param {string} client '' = none
 * @returns {boolean} whether they receive the publication
 */
export const reaches = ({ excludeClient, excludeUser, users }, user, client) =>
  users === null
    ? (excludeUser === '' || user !== excludeUser) && (excludeClient === '' || client !== excludeClient)
    : users.includes(user)
