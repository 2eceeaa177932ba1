import type { deliveryEventTypes } from '../../consents/deliverability-state.ts'
import type { Method } from '../../consents/schema.ts'
import type { Operation } from '../../organizations/logged-changes.ts'
import type { Channel } from '../../values/channels.ts'
import type { Html } from '../../values/html.ts'
import type { DossierLine } from '../dossier-schema.ts'

/** The types of lines that have a section of the page: each type but those at the beginning and at the end. */
export type SectionType = Exclude<DossierLine['type'], 'about' | 'end'>

/** The names of columns and of rows. A member of a line has the label of its name. */
export const labels = [
  ...['id', 'mobile_e164', 'version', 'mobile', 'name', 'since', 'until', 'from', 'purpose', 'channel', 'now'],
  ...['because', 'method', 'source', 'ip', 'user_agent', 'text_version', 'reference', 'consent_string', 'recorded_at'],
  ...[
    'recorded_by',
    'person_id',
    'receipt',
    'address',
    'reason',
    'events',
    'url',
    'shown_from',
    'with',
    'as',
    'direction',
  ],
  ...[
    'merged_id',
    'into_id',
    'sequence',
    'unmerged_sequence',
    'undo',
    'group',
    'what',
    'by',
    'released_at',
    'when',
    'rule',
  ],
  ...[
    'after_days',
    'due_at',
    'job',
    'receiver',
    'outcome',
    'records',
    'completed_at',
    'field',
    'before',
    'after',
    'who',
  ],
] as const
export type Label = (typeof labels)[number]

/** The words of the page in one language. */
export type DossierWords = {
  title: (holder: string) => string
  heading: string
  lead: (holder: Html, day: Html) => Html
  madeBy: (time: Html, subject: string) => Html
  facts: Record<'made' | 'questions' | 'privacy' | 'contents', string>
  /** The line of numbers below the facts, for those who make dossiers. */
  numbers: (id: string, head: number, log: string) => string
  complete: (entries: number) => string
  person: string
  values: Record<'unset' | 'empty' | 'none' | 'yes' | 'no', string>
  states: Record<'active' | 'placeholder' | 'deleted' | 'erased', string>
  decisions: Record<'pending' | 'allowed' | 'forbidden' | 'refused' | 'superseded', string>
  channels: Record<Channel, string>
  sources: Record<'answer' | 'default' | 'mandatory', string>
  methods: Record<Method, string>
  textVersion: (version: number) => string
  events: Record<(typeof deliveryEventTypes)[number], string>
  directions: Record<'in' | 'out', string>
  aliasFrom: (merge: number | null) => string
  memberships: Record<'member' | 'entered' | 'left', string>
  actions: Record<'erase' | 'delete', string>
  records: Record<'keep' | 'linked', string>
  payloads: Record<'full' | 'ids', string>
  deliveries: Record<'waiting' | 'delivered' | 'failed', string>
  operations: Record<Operation, string>
  changeBy: (actor: string, sequence: number, version: number | null, request: string) => string
  valuesGone: string
  looked: string
  wrote: string
  labels: Record<Label, string>
  /** The title of each section, the text below it, and the text of one without lines. */
  sections: Record<SectionType, [title: string, about: string, none: string]>
}
