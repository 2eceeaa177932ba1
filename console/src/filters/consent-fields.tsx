import { useMessages } from '../app/language.tsx'
import { Select } from '../ui/select.tsx'
import { useFilterChoices } from './filter-context.ts'
import type { FilterNode, NodeOf } from './filter-tree.ts'
import { messages } from './messages.ts'

/** Stands for no choice: a list has no empty value. */
const any = 'any'

/** The purpose, the channel and the state of a consent. */
export function ConsentFields({ node, onChange }: { node: NodeOf<'consent'>; onChange(node: FilterNode): void }) {
  const texts = useMessages(messages)
  const { purposes, channels, withPurpose } = useQuestion(node)
  const chosen = (value: string) => (value === any ? '' : value)
  return (
    <>
      <Select
        aria-label={texts.purpose}
        options={[{ value: any, label: texts.anyPurpose }, ...purposes]}
        value={node.consentTypeId || any}
        onChange={value => onChange(withPurpose(chosen(value)))}
      />
      <Select
        aria-label={texts.channel}
        options={[{ value: any, label: texts.anyChannel }, ...channels]}
        value={node.channel || any}
        onChange={value => onChange({ ...node, channel: chosen(value) })}
      />
      <Select
        aria-label={texts.consentState}
        options={[
          { value: 'true', label: texts.granted },
          { value: 'false', label: texts.refused },
          { value: 'pending', label: texts.pending },
          { value: any, label: texts.anyState },
        ]}
        value={node.state || any}
        onChange={value => onChange({ ...node, state: chosen(value) })}
      />
    </>
  )
}

/** The purpose and the channel for which people may be written to. */
export function ContactableFields({
  node,
  onChange,
}: {
  node: NodeOf<'contactable'>
  onChange(node: FilterNode): void
}) {
  const texts = useMessages(messages)
  const { purposes, channels, withPurpose } = useQuestion(node)
  return (
    <>
      <Select
        aria-label={texts.purpose}
        placeholder={texts.choosePurpose}
        options={purposes}
        value={node.consentTypeId || null}
        onChange={value => onChange(withPurpose(value))}
      />
      <Select
        aria-label={texts.channel}
        placeholder={texts.chooseChannel}
        options={channels}
        value={node.channel || null}
        onChange={channel => onChange({ ...node, channel })}
      />
    </>
  )
}

/** The active purposes, and the channels of the chosen one, or of all. A channel that the next purpose lacks is not kept. */
function useQuestion<Node extends { consentTypeId: string; channel: string }>(node: Node) {
  const texts = useMessages(messages)
  const { definitions } = useFilterChoices()
  const active = (definitions?.consent_types ?? []).filter(({ state }) => state === 'active')
  const purposeWith = (value: string) => active.find(({ id }) => String(id) === value)
  const purpose = purposeWith(node.consentTypeId)
  const channels = new Set((purpose ? [purpose] : active).flatMap(each => each.channels.map(({ channel }) => channel)))
  const withPurpose = (consentTypeId: string): Node => {
    const next = purposeWith(consentTypeId)
    const hasChannel = !next || next.channels.some(({ channel }) => channel === node.channel)
    return { ...node, consentTypeId, channel: hasChannel ? node.channel : '' }
  }
  return {
    purposes: active.map(({ id, name }) => ({ value: String(id), label: name })),
    channels: [...channels].map(value => ({ value: value as string, label: texts.channels[value] })),
    withPurpose,
  }
}
