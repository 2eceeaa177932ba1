import { createValueRefusal, Fault } from './errors.ts'
import { hasInvisible, withUnseen } from './invisible-characters.ts'

/**
 * Maps small Cyrillic, Greek, Armenian and extended Latin letters and digits to the Latin letter that they look like.
 */
const lookAlikes = new Map(
  Object.entries({
    ...{ a: 'аαɑ', b: 'вьβ', c: 'сϲ', d: 'ԁ', e: 'еєε', g: 'ɡ', h: 'нһհ', j: 'јϳ', k: 'кκ', l: 'ӏłı1i|іιɩ', m: 'мμ' },
    ...{
      n: 'ηոп',
      o: 'оοօσø0',
      p: 'рρ',
      q: 'ԛ',
      r: 'г',
      s: 'ѕ',
      t: 'тτ',
      u: 'υսц',
      v: 'νѵ',
      w: 'ԝω',
      x: 'хχ',
      y: 'уүγ',
      z: 'ζ',
    },
  }).flatMap(([latin, others]) => [...others].map(other => [other, latin] as const)),
)

/**
 * Normalizes a name as readers perceive it: without case, accents, width and invisible characters, and with one letter
 * for all that look alike.
 */
const readingOf = (name: string) =>
  [...name.normalize('NFKD').replaceAll(/\p{M}/gu, '').toLowerCase().trim().replaceAll(/\s+/gu, ' ')]
    .map(letter => lookAlikes.get(letter) ?? letter)
    .join('')

/** Names with the same result look the same to a reader. */
export const lookAlikeOf = (name: string): string => readingOf(name).replaceAll(/[\s\p{Pd}_.]+/gu, ' ')

const [ownName, ownNames] = [readingOf('kith'), ['kith', 'link', 'retention'].map(readingOf)]

/**
 * Whether a name looks like a name of kith itself in the change log, such as the pages behind consent links, the clock
 * of segments and commands.
 */
const isOwnActor = (name: string) => {
  const reading = readingOf(name)
  return ownNames.includes(reading) || reading.startsWith(`${ownName} `)
}

/**
 * Whether a text can name an actor of the change log, whatever its source: a token of kith or of an outside issuer, a
 * session or a client. It has 1 to 255 characters without control or invisible characters, and does not look like a
 * name of kith itself.
 */
export const isActorName = (text: string): boolean =>
  /^.{1,255}$/su.test(text) && text.isWellFormed() && !hasInvisible(text) && !isOwnActor(text)

/** The message for a text that cannot name an actor. */
export const actorNameMessage =
  'must have 1 to 255 characters, no control or invisible characters, and not be a name of kith itself'

/** Throws a Fault of 400 unless the name of a body can name an actor. */
export function requireActorName(name: string): void {
  if (!isActorName(name)) throwWrongName(withUnseen(`The name ${actorNameMessage}.`, name))
}

/** Throws a Fault of 400 if a reader of the log could mistake the name of a body for a client. */
export function requireNoClientId(name: string): void {
  if (organizationOf(name) !== undefined) throwWrongName('The name has the form of a client_id. Choose another.')
}

function throwWrongName(message: string): never {
  throw new Fault(createValueRefusal('/name', message))
}

/** A client id is the organization's key, a dot, and 96 random bits. */
const clientIdPattern = /^([a-z][a-z0-9_-]{0,62})\.[\w-]{16}$/

/** The organization key at the beginning of a client id. Undefined for a malformed id. */
export const organizationOf = (client_id: string): string | undefined => clientIdPattern.exec(client_id)?.[1]

/**
 * Whether a reader of an organization's log could mistake a name for one of its clients. The tokens of a client have
 * the client id as subject.
 */
export const looksLikeClient = (name: string, organizationKey: string): boolean =>
  organizationOf(name) === organizationKey
