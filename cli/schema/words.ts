import type { ConsentType } from '../../client/index.ts'
import type { Create, Fields, Kind, Missing, Plan, Step } from './plan.ts'

const kinds: Record<Kind, string> = { stack: 'stack', attribute: 'attribute', consent_type: 'consent type' }

/** Formats a plan, one line per step: `+` creates, `~` changes, `-` archives, `?` is not in the file. */
export function planLines({ steps, missing }: Plan): string[] {
  return [...steps.map(stepText), ...missing.map(missingText)]
}

/** Formats one step as a line. */
export function stepText(step: Step): string {
  const subject = `${kinds[step.kind]} ${step.name}`
  if (step.action === 'create') return `+ ${subject} (${createText(step)})`
  if (step.action === 'archive') return `- ${subject}: archived`
  return `~ ${subject}: ${changesText(step.fields)}`
}

function missingText({ kind, name }: Missing): string {
  const hint = kind === 'stack' ? 'it stays, because stacks cannot be archived' : 'it stays without --archive-missing'
  return `? ${kinds[kind]} ${name} is not in the file: ${hint}`
}

function createText(step: Create): string {
  if (step.kind === 'stack') {
    const { kind, retention_days } = step.definition
    return retention_days === null ? kind : `${kind}, erased after ${retention_days} days`
  }
  if (step.kind === 'attribute') {
    const { type, target_stack, cardinality, indexed } = step.definition
    const target = type === 'stack' ? `to ${target_stack}` : type === 'person' ? 'to a person' : type
    return [target, ...(cardinality === 'many' ? ['many'] : []), ...(indexed ? ['indexed'] : [])].join(', ')
  }
  const { channels, mandatory, state } = step.definition
  return [valueText(channels), ...(mandatory ? ['mandatory'] : []), ...(state === 'archived' ? [state] : [])].join(', ')
}

function changesText(fields: Fields): string {
  return Object.entries(fields)
    .map(([field, { before, after }]) => `${field} ${valueText(before)} → ${valueText(after)}`)
    .join('; ')
}

function valueText(value: unknown): string {
  if (!Array.isArray(value)) return JSON.stringify(value)
  const channels = value as ConsentType['channels']
  const marksOf = ({ is_default, double_opt_in }: (typeof channels)[number]) =>
    [is_default && 'default', double_opt_in && 'double opt-in'].filter(Boolean).join(', ')
  return channels.map(entry => `${entry.channel}${marksOf(entry) && ` (${marksOf(entry)})`}`).join(' and ')
}
