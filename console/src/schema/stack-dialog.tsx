import type { Attribute, Stack } from '@kith/client'
import { client } from '../app/client.ts'
import { useMessages } from '../app/language.tsx'
import { useNavigateAfter } from '../app/use-navigate-after.ts'
import { changedMembers } from '../entity/equal.ts'
import { messages as entityMessages } from '../entity/messages.ts'
import { useDefinitions, useDefinitionWrite } from '../entity/schema.ts'
import { messages as reportMessages } from '../reports/messages.ts'
import { Checkbox, FieldGroup, TextField, useDraft } from '../ui/field.tsx'
import { FormDialog } from '../ui/form.tsx'
import { Select } from '../ui/select.tsx'
import { messages } from './messages.ts'

type StackDraft = Record<'key' | 'name' | 'retention_days' | 'label', string> & Pick<Stack, 'kind'> & AboutPeople

function writeStack(stack: Stack | undefined, draft: StackDraft, idempotencyKey: string): Promise<Stack> {
  const { kind, summary, erased_with } = draft
  const name = draft.name.trim() || stack?.key
  const days = draft.retention_days.trim()
  const body = {
    ...(name && { name }),
    retention_days: kind === 'item' || days === '' ? null : Number(days),
    label: draft.label.trim() || null,
    ...{ summary, erased_with },
  }
  return stack
    ? client.schema.stacks.patch(stack.key, changedMembers(body, stack))
    : client.schema.stacks.create({ key: draft.key.trim(), kind, ...body }, { idempotencyKey })
}

/** Creates a stack, or changes its settings. Key and kind never change, and no stack is deleted. */
export function StackDialog({ stack, onClose }: { stack?: Stack; onClose: () => void }) {
  const texts = useMessages(messages)
  const { draft, change, field } = useDraft<StackDraft>({
    key: '',
    name: stack?.name ?? '',
    kind: stack?.kind ?? 'item',
    retention_days: stack?.retention_days ? String(stack.retention_days) : '',
    label: stack?.label ?? '',
    summary: stack?.summary ?? null,
    erased_with: stack?.erased_with ?? null,
  })
  const { definitions } = useDefinitions()
  const navigate = useNavigateAfter()
  const save = useDefinitionWrite(
    (draft: StackDraft, key) => writeStack(stack, draft, key),
    ({ key }) => {
      onClose()
      navigate({ to: '/schema', search: { tab: 'attributes', owner: key } })
    },
  )
  return (
    <FormDialog
      title={stack ? texts.editStack : texts.newStack}
      onSubmit={() => save.mutate(draft)}
      write={save}
      submit={stack ? texts.save : texts.create}
      onClose={onClose}
    >
      {!stack && <TextField label={texts.key} help={texts.keyHelp} isRequired autoFocus {...field('key')} />}
      <TextField label={texts.name} {...field('name')} />
      <TextField label={texts.recordLabel} help={texts.recordLabelHelp} {...field('label')} />
      {!stack && (
        <Select
          label={texts.kind}
          options={[
            { value: 'item', label: texts.kinds.item, help: texts.itemHelp },
            { value: 'event', label: texts.kinds.event, help: texts.eventHelp },
          ]}
          {...field('kind')}
        />
      )}
      {draft.kind === 'event' && (
        <TextField
          label={texts.retention}
          help={texts.retentionHelp}
          inputMode="numeric"
          {...field('retention_days')}
        />
      )}
      {stack && (
        <AboutPeopleFields
          attributes={definitions.attributes.filter(({ owner, state }) => owner === stack.key && state === 'active')}
          value={draft}
          onChange={change}
        />
      )}
    </FormDialog>
  )
}

/** The members of a stack about the people of its records. */
type AboutPeople = Pick<Stack, 'summary' | 'erased_with'>
type Measure = NonNullable<Stack['summary']>['measures'][number]

const none = ''

type AboutPeopleFieldsProps = {
  attributes: readonly Attribute[]
  value: AboutPeople
  onChange(change: Partial<AboutPeople>): void
}

/** The fields about people: the relationship by which records are erased, and their summary on the page of a person. */
function AboutPeopleFields({ attributes, value: { summary, erased_with }, onChange }: AboutPeopleFieldsProps) {
  const texts = useMessages(messages)
  const { measures: ops } = useMessages(reportMessages)
  const { fields } = useMessages(entityMessages)
  const optionsOf = (...types: Attribute['type'][]) =>
    attributes.filter(({ type }) => types.includes(type)).map(({ key, name }) => ({ value: key, label: name }))
  const people = optionsOf('person')
  if (people.length === 0) return null
  const measures: { measure: Measure; label: string }[] = [
    { measure: { op: 'count' }, label: ops.count },
    ...optionsOf('number').flatMap(({ value: key, label }) =>
      (['sum', 'avg', 'min', 'max'] as const).map(op => ({ measure: { op, key }, label: `${ops[op]}: ${label}` })),
    ),
  ]
  return (
    <>
      <Select<string>
        label={texts.erasedWith}
        help={texts.erasedWithHelp}
        name="/erased_with"
        options={[{ value: none, label: texts.erasedWithNobody }, ...people]}
        value={erased_with ?? none}
        onChange={key => onChange({ erased_with: key || null })}
      />
      <Select<string>
        label={texts.summary}
        help={texts.summaryHelp}
        name="/summary"
        options={[{ value: none, label: texts.noSummary }, ...people]}
        value={summary?.person ?? none}
        onChange={person => onChange({ summary: person ? { measures: [{ op: 'count' }], ...summary, person } : null })}
      />
      {summary && (
        <>
          <Select<string>
            label={texts.summaryTime}
            options={[{ value: none, label: fields.created_at }, ...optionsOf('date', 'datetime')]}
            value={summary.time ?? none}
            onChange={time => onChange({ summary: { ...summary, time: time || null } })}
          />
          <FieldGroup legend={texts.summaryMeasures} help={texts.summaryMeasuresHelp} name="/summary/measures">
            {measures.map(({ measure, label }) => {
              const others = summary.measures.filter(each => each.op !== measure.op || each.key !== measure.key)
              const set = (isSelected: boolean) =>
                onChange({ summary: { ...summary, measures: isSelected ? [...others, measure] : others } })
              return (
                <Checkbox key={label} isSelected={others.length < summary.measures.length} onChange={set}>
                  {label}
                </Checkbox>
              )
            })}
          </FieldGroup>
        </>
      )}
    </>
  )
}
