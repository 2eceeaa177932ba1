import { channels, channelTable } from '../values/channels.ts'

/**
 * SQL of the keyed hash of a text, with a row k of `tombstone_keys`. The key never leaves the database. Without the
 * key, the erased values cannot be guessed from the hashes.
 */
export const hashOf = (text: string): string => `sha256(k.secret || sha256(k.secret || convert_to(${text}, 'UTF8')))`

/** The values v.value of $2 with their hashes. */
export const hashed = `unnest($2::text[]) as v(value) join tombstone_keys k on k.organization_id = $1 cross join lateral (
     select ${hashOf('v.value')} as hash offset 0
   ) h`

/** The channel of a value v.value such as `email:ada@example.com`. */
export const channelOfValue = `case ${channels
  .map(channel => `when v.value like '${channelTable[channel].key.replace('_key', '')}:%' then '${channel}'`)
  .join(' ')} end`
