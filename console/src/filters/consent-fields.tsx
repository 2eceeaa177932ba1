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
  const { definitions } = useFilterChoices()
  const purposes = (definitions?.consent_types ?? []).filter(({ state }) => state === 'active')
  const purpose = purposes.find(({ id }) => String(id) === node.consentTypeId)
  const channels = new Set(
    (purpose ? [purpose] : purposes).flatMap(each => each.channels.map(({ channel }) => channel)),
  )
  const chosen = (value: string) => (value === any ? '' : value)
  const choosePurpose = (value: string) => {
    const next = purposes.find(({ id }) => String(id) === value)
    const hasChannel = !next || next.channels.some(({ channel }) => channel === node.channel)
    onChange({ ...node, consentTypeId: chosen(value), channel: hasChannel ? node.channel : '' })
  }
  return (
    <>
      <Select
        aria-label={texts.purpose}
        options={[
          { value: any, label: texts.anyPurpose },
          ...purposes.map(({ id, name }) => ({ value: String(id), label: name })),
        ]}
        value={node.consentTypeId || any}
        onChange={choosePurpose}
      />
      <Select
        aria-label={texts.channel}
        options={[
          { value: any, label: texts.anyChannel },
          ...[...channels].map(value => ({ value: value as string, label: texts.channels[value] })),
        ]}
        value={node.channel || any}
        onChange={value => onChange({ ...node, channel: chosen(value) })}
      />
      <Select
        aria-label={texts.consentState}
        options={[
          { value: 'true', label: texts.granted },
          { value: 'false', label: texts.refused },
          { value: any, label: texts.anyState },
        ]}
        value={node.state || any}
        onChange={value => onChange({ ...node, state: chosen(value) })}
      />
    </>
  )
}
