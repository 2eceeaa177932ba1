import type { RetentionRule, RetentionRuleBody } from '@kith/client'
import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { useMessages } from '../app/language.tsx'
import type { Write } from '../app/write.ts'
import { segmentsQuery } from '../entity/schema.ts'
import { TextField } from '../ui/field.tsx'
import { FormDialog } from '../ui/form.tsx'
import { Select } from '../ui/select.tsx'
import { messages } from './messages.ts'

type Draft = { segment: string | null; days: string; action: RetentionRule['action']; limit: string }

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
  const [draft, setDraft] = useState<Draft>({
    segment: rule?.segment ?? null,
    days: String(rule?.after_days ?? 1_095),
    action: rule?.action ?? 'erase',
    limit: String(rule?.daily_limit ?? 1_000),
  })
  const change = (changed: Partial<Draft>) => setDraft({ ...draft, ...changed })
  const submit = () =>
    write.mutate({
      segment: draft.segment ?? '',
      after_days: Number(draft.days),
      action: draft.action,
      daily_limit: Number(draft.limit),
    })
  return (
    <FormDialog
      title={title}
      onSubmit={submit}
      write={write}
      submit={action}
      isDisabled={draft.segment === null}
      onClose={onClose}
    >
      <Select
        label={texts.segment}
        name="/segment"
        options={segments.map(({ key, name }) => ({ value: key, label: name }))}
        value={draft.segment}
        onChange={segment => change({ segment })}
      />
      <TextField
        label={texts.afterDays}
        help={texts.afterDaysHelp}
        name="/after_days"
        inputMode="numeric"
        isRequired
        value={draft.days}
        onChange={days => change({ days })}
      />
      <Select<RetentionRule['action']>
        label={texts.action}
        name="/action"
        options={[
          { value: 'erase', label: texts.erase },
          { value: 'delete', label: texts.delete },
        ]}
        value={draft.action}
        onChange={action => change({ action })}
      />
      <TextField
        label={texts.dailyLimit}
        name="/daily_limit"
        inputMode="numeric"
        isRequired
        value={draft.limit}
        onChange={limit => change({ limit })}
      />
    </FormDialog>
  )
}
