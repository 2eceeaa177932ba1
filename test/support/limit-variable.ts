/** Returns the setting of a limit: `KITH_LIMIT_REQUEST_MS` for `requestMs`. */
export const limitVariable = (name: string) =>
  `KITH_LIMIT_${name.replace(/[A-Z]/g, letter => `_${letter}`).toUpperCase()}`
