import { hasInvisible } from './invisible-characters.ts'

/** The actors by which the change log names kith itself, such as the pages behind consent links, the clock of segments and commands. */
const ownActor = /^(link|retention|kith(\s.*)?)$/s

/** A name without what a reader may overlook: case, accents, width, and white space at its ends. */
const plainName = (name: string) => name.normalize('NFKD').replaceAll(/\p{M}/gu, '').toLowerCase().trim()

/**
 * Whether a text can name an actor of the change log, from wherever it comes: a token of kith or of an outside issuer, a session or a client. It
 * has 1 to 255 characters, none of them a control or invisible character, and is not read as the name of kith itself.
 */
export const isActorName = (text: string): boolean =>
  /^.{1,255}$/su.test(text) && text.isWellFormed() && !hasInvisible(text) && !ownActor.test(plainName(text))

/** The message for a text that cannot name an actor. */
export const actorNameMessage =
  'must have 1 to 255 characters, no control or invisible characters, and not be a name of kith itself'

/** A client id is the organization's key, a dot, and 96 random bits. */
const clientIdPattern = /^([a-z][a-z0-9_-]{0,62})\.[\w-]{16}$/

/** The organization key that a client id begins with. Undefined for a malformed id. */
export const organizationOf = (client_id: string): string | undefined => clientIdPattern.exec(client_id)?.[1]

/** Whether a reader of the log of an organization could take a name for one of its clients, whose tokens have the client id as subject. */
export const looksLikeClient = (name: string, organizationKey: string): boolean =>
  organizationOf(name) === organizationKey
