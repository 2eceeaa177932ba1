import { readLinkKey } from '../consent-links/consent-links.ts'
import {
  type ConsentLink,
  isSignedBy,
  type LinkKey,
  type LinkKind,
  parseLink,
  signLink,
} from '../consent-links/token.ts'
import { type Answers, answerKey } from '../consents/answers.ts'
import { type Context, contextOf } from '../db/context.ts'
import type { Database } from '../db/db.ts'
import { type ConsentType, currentDefinitions, type Definitions } from '../organizations/definitions.ts'
import { readSettings } from '../organizations/settings.ts'
import type { SettingsShape } from '../organizations/settings-schema.ts'
import type { PageCall } from '../route/page.ts'
import type { personOf } from '../route/person-addresses.ts'
import { type Channel, channelTable } from '../values/channels.ts'
import { refuse } from '../values/errors.ts'
import { choosePageLanguage, chooseText } from './languages.ts'
import type { Frame } from './layout.ts'
import { readLinkedPersonSql, readNewestTextVersionsSql, readTextsSql } from './sql.ts'
import { words } from './words.ts'

/** A version of the texts of a consent type. */
type TextVersion = { consent_type_id: number; version: number; language: string; bytes: number }

/** A text as a page shows it. */
export type ShownText = { consent_type_id: number; version: number; language: string; text: string; url: string | null }

export type LinkedPerson = { id: string; version: number; language: string | null; answers: Answers } & Record<
  (typeof channelTable)[Channel]['key'],
  string | null
>

/** A purpose on a channel as a page shows it to one person. */
export type Choice = {
  type: ConsentType
  channel: Channel
  answer: Answers[string] | undefined
  /** Whether the person agrees: by the answer, even if it waits for its confirmation, or else by the default. */
  isChosen: boolean
  /** The version of the text for this person: the newest in the person's language, or else the newest. */
  version: TextVersion | undefined
}

/** A choice with the text that the page shows. */
export type ChoiceWithText = Choice & { text: ShownText | undefined }

/** A valid link, and the data that its page needs. */
export type OpenLink = {
  token: string
  key: LinkKey
  link: ConsentLink
  person: LinkedPerson
  definitions: Definitions
  settings: SettingsShape
  versions: readonly TextVersion[]
  frame: Frame
}

const throwInvalid = (): never => refuse('not_found', 'The link is not valid.')
const throwExpired = (): never => refuse('invalid_parameter', 'The link is no longer valid.', { status: 410 })

/**
 * Verifies a link and reads the data of its page. Throws a Fault of 404 for a token that opens another page, or that
 * kith did not sign for this person and address. Throws a Fault of 410 for an expired token, or if its person does not
 * exist any more.
 */
export async function openLink({ db, token, acceptLanguage, signal }: PageCall, kind: LinkKind): Promise<OpenLink> {
  const link = parseLink(token)
  if (link?.kind !== kind) return throwInvalid()
  const { organization_id, keyId, person_id } = link
  // Until the signature is verified, the token may name any organization, so it must not use the share of one.
  const key = await readLinkKey({ db, organization_id }, keyId, signal)
  if (!key) return throwInvalid()
  const found = { by: 'id', identifier: person_id } as const
  const isSigned = isSignedBy(token, key)
  // The signature of a confirmation covers the address, so the person is read to verify it.
  const isAddressed = !isSigned && link.kind === 'confirm'
  const addressed = isAddressed ? await readPerson({ db, organization_id }, found, signal) : undefined
  if (!isSigned && !(addressed && isFor({ token, key, link }, addressed))) return throwInvalid()
  if (link.expiresAt * 1_000 <= Date.now()) return throwExpired()
  const context = contextOf(db.shareOf(organization_id, 'reads'), organization_id)
  const [person, definitions, settings, versions] = await Promise.all([
    addressed ?? readPerson(context, found, signal),
    currentDefinitions(context, signal),
    readSettings(context, signal),
    context.db.query<TextVersion>(readNewestTextVersionsSql, [organization_id], signal),
  ])
  if (!person) return throwExpired()
  const language = choosePageLanguage(person.language, acceptLanguage, settings.language)
  const frame = { language, words: words[language], settings }
  return { token, key, link, person, definitions, settings, versions, frame }
}

/**
 * Whether a link is for the person. A confirmation is also signed for an address, because it proves nothing about
 * another address that the person got since. Confirmations of earlier versions name no address.
 */
function isFor({ token, key, link }: Pick<OpenLink, 'token' | 'key' | 'link'>, person: LinkedPerson): boolean {
  const { kind, channel } = link
  const address = kind === 'confirm' && channel !== null ? person[channelTable[channel].key] : null
  return isSignedBy(token, key) || (address !== null && isSignedBy(token, key, address))
}

/** Reads the person that an identifier leads to. Undefined if there is none. */
export async function readPerson(
  { db, organization_id }: Pick<Context, 'db' | 'organization_id'>,
  { by, identifier }: ReturnType<typeof personOf>,
  signal: PageCall['signal'],
): Promise<LinkedPerson | undefined> {
  const [person] = await db.query<LinkedPerson>(readLinkedPersonSql[by], [organization_id, identifier], signal)
  return person
}

/** Reads the person and the definitions again, after a write or after a write that met another one. */
export async function reopen({ db, signal }: PageCall, open: OpenLink): Promise<OpenLink> {
  const { organization_id, person_id } = open.link
  const context = contextOf(db.shareOf(organization_id, 'reads'), organization_id)
  const [person, definitions] = await Promise.all([
    readPerson(context, { by: 'id', identifier: person_id }, signal),
    currentDefinitions(context, signal),
  ])
  return person && isFor(open, person) ? { ...open, person, definitions } : throwExpired()
}

/** The purposes that a person can answer, on each of their channels, in order of type and channel. */
export function choicesOf({ definitions, person, versions, frame, settings }: OpenLink): Choice[] {
  const wanted = [person.language, frame.language, settings.language]
  return definitions.consent_types
    .filter(type => type.state === 'active' && !type.mandatory)
    .flatMap(type => {
      const ofType = versions.filter(({ consent_type_id }) => consent_type_id === type.id)
      const version = chooseText(ofType, wanted)
      const channels = type.channels.map(({ channel }) => channel).sort()
      return channels.map(channel => {
        const answer = person.answers[answerKey(type.id, channel)]
        const isChosen = answer ? answer.state || answer.pending === true : type.default_state
        return { type, channel, answer, isChosen, version }
      })
    })
}

/** The choices of the link. Throws a Fault of 410 if its purpose can no longer be answered. */
export function linkedChoices(open: OpenLink): Choice[] {
  const { consent_type_id, channel } = open.link
  const choices = choicesOf(open).filter(
    choice =>
      (consent_type_id === null || choice.type.id === consent_type_id) &&
      (channel === null || choice.channel === channel),
  )
  if (choices.length > 0) return choices
  return refuse('invalid_parameter', 'The purpose of the link cannot be answered any more.', { status: 410 })
}

/** Whether the person has given this answer, and it does not wait for a confirmation. */
export const isAnswered = ({ answer }: Choice, state: boolean): boolean =>
  answer !== undefined && answer.state === state && !answer.pending

/** The maximum total size of the texts of a page. A text beyond it is not shown, and no answer names its version. */
const maxTextBytes = 262_144

/**
 * Reads the texts of choices. The limit keeps the memory of a page small, because a tenant could have a hundred texts
 * of 64 KiB and open the page many times at once.
 */
export async function withTexts(
  { db, signal }: PageCall,
  { link }: OpenLink,
  choices: readonly Choice[],
): Promise<ChoiceWithText[]> {
  let bytes = 0
  const wanted = [...new Set(choices.map(({ version }) => version))].filter(version => {
    bytes += version?.bytes ?? 0
    return version !== undefined && bytes <= maxTextBytes
  }) as TextVersion[]
  const texts =
    wanted.length === 0 ? [] : await readTexts(db.shareOf(link.organization_id, 'reads'), link, wanted, signal)
  const byType = new Map(texts.map(text => [text.consent_type_id, text]))
  return choices.map(choice => ({ ...choice, text: byType.get(choice.type.id) }))
}

/** Reads one version of the texts of each of these consent types. */
export function readTexts(
  db: Database,
  { organization_id }: ConsentLink,
  versions: readonly Pick<TextVersion, 'consent_type_id' | 'version'>[],
  signal: PageCall['signal'],
): Promise<ShownText[]> {
  const values = [versions.map(({ consent_type_id }) => consent_type_id), versions.map(({ version }) => version)]
  return db.query<ShownText>(readTextsSql, [organization_id, ...values], signal)
}

/** The address of the preference page, relative to any page of a link. Its link expires with this one. */
export function preferencesPathOf({ link, key }: OpenLink): string {
  return `../p/${signLink({ ...link, kind: 'preferences', consent_type_id: null, channel: null }, key)}`
}
