import type { RetentionRule, RetentionRuleBody } from '@kith/client'
import { useQuery } from '@tanstack/react-query'
import type { Write } from '../app/client.ts'
import { useMessages } from '../app/language.tsx'
import { segmentsQuery } from '../entity/schema.ts'
import { TextField, useDraft } from '../ui/field.tsx'
import { FormDialog } from '../ui/form.tsx'
import { Select } from '../ui/select.tsx'
import { messages } from './messages.ts'

type RuleFormProps = {
  title: string
  rule: RetentionRule | null
  action: string
  write: Write<RetentionRuleBody>
  onClose: () => void
}

/** A dialog that makes a rule, or changes one. */
export function RuleForm({ title, rule, action, write, onClose }: RuleFormProps) {
  const texts = useMessages(messages)
  const { data: segments = [] } = useQuery(segmentsQuery)
  const { draft, field } = useDraft({
    segment: rule?.segment ?? null,
    after_days: String(rule?.after_days ?? 1_095),
    action: rule?.action ?? 'erase',
    daily_limit: String(rule?.daily_limit ?? 1_000),
  })
  const { segment, after_days, daily_limit } = draft
  const submit = () =>
    write.mutate({
      ...draft,
      segment: segment ?? '',
      after_days: Number(after_days),
      daily_limit: Number(daily_limit),
    })
  return (
    <FormDialog
      title={title}
      onSubmit={submit}
      write={write}
      submit={action}
      isDisabled={segment === null}
      onClose={onClose}
    >
      <Select
        label={texts.segment}
        options={segments.map(({ key, name }) => ({ value: key, label: name }))}
        {...field('segment')}
      />
      <TextField
        label={texts.afterDays}
        help={texts.afterDaysHelp}
        inputMode="numeric"
        isRequired
        {...field('after_days')}
      />
      <Select label={texts.action} options={{ erase: texts.erase, delete: texts.delete }} {...field('action')} />
      <TextField label={texts.dailyLimit} inputMode="numeric" isRequired {...field('daily_limit')} />
    </FormDialog>
  )
}
