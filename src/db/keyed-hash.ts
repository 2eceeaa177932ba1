/**
 * SQL of the keyed hash of a text, with a row k of `tombstone_keys`. The key never leaves the database: without it, nobody can find out which
 * values were erased.
 */
export const hashOf = (text: string): string => `sha256(k.secret || sha256(k.secret || convert_to(${text}, 'UTF8')))`
