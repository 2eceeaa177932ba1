import type { RetentionRule, RetentionRuleBody } from '@kith/client'
import { useQuery } from '@tanstack/react-query'
import { useNavigate, useParams } from '@tanstack/react-router'
import { useState } from 'react'
import { client, useWrite } from '../app/client.ts'
import { useFormats, useMessages } from '../app/language.tsx'
import { EntityLink } from '../entity/entity-link.tsx'
import { Button } from '../ui/button.tsx'
import { Actions, ConfirmDialog } from '../ui/dialog.tsx'
import { EmptyState, Facts, Loading, Notice, Page, Problem, Section } from '../ui/page.tsx'
import { numberCell, numberHeader, Table } from '../ui/table.tsx'
import { RuleState } from './lifetimes-page.tsx'
import { messages } from './messages.ts'
import { lifetimesKey, previewQuery, ruleQuery, rulesQuery, runsQuery } from './queries.ts'
import { RuleForm } from './rule-form.tsx'

/** The page of a retention rule: whom it concerns today, and what it has done. */
export function RulePage() {
  const texts = useMessages(messages)
  const formats = useFormats()
  const { ruleId } = useParams({ strict: false }) as { ruleId: string }
  const query = useQuery(ruleQuery(Number(ruleId)))
  if (query.isPending) return <Loading />
  if (!query.data)
    return (
      <Page title={texts.title}>
        <Problem error={query.error} onRetry={() => query.refetch()} />
      </Page>
    )
  const rule = query.data
  const { paused, today } = rule
  return (
    <Page title={rule.key} subtitle={texts[rule.action]}>
      {paused && (
        <Notice kind="caution" title={texts.pausedTitle}>
          <p>{texts.reasons[paused.reason]}</p>
        </Notice>
      )}
      <RuleActions rule={rule} />
      <Facts
        facts={[
          [texts.state, <RuleState key="state" rule={rule} />],
          [texts.segment, rule.segment ?? texts.noSegment],
          [texts.afterDays, formats.number(rule.after_days)],
          [texts.dailyLimit, formats.number(rule.daily_limit)],
          [texts.today, texts.todayFacts(formats.number(today.told), formats.number(today.done))],
        ]}
      />
      <Preview id={rule.id} />
      <Runs id={rule.id} />
    </Page>
  )
}

function RuleActions({ rule: { id, active, ...rule } }: { rule: RetentionRule }) {
  const texts = useMessages(messages)
  const formats = useFormats()
  const navigate = useNavigate()
  const [overlay, setOverlay] = useState<'on' | 'edit' | 'remove'>()
  const preview = useQuery(previewQuery(id))
  const close = () => setOverlay(undefined)
  const refresh = [lifetimesKey]
  const update = useWrite((body: Partial<RetentionRuleBody>) => client.retentionRules.patch(id, body), {
    refresh,
    onSuccess: close,
  })
  const turn = (active: boolean) => update.mutate({ active })
  const remove = useWrite(() => client.retentionRules.delete(id), {
    onSuccess: () => navigate({ to: '/lifetimes' }),
    refresh: [rulesQuery.queryKey],
  })
  const count = preview.data?.count ?? 0
  return (
    <>
      <Actions>
        {active ? (
          <Button onPress={() => turn(false)}>{texts.turnOff}</Button>
        ) : (
          <Button look="primary" onPress={() => setOverlay('on')} isDisabled={rule.segment === null}>
            {texts.turnOn}
          </Button>
        )}
        <Button look="danger" onPress={() => setOverlay('remove')}>
          {texts.remove}
        </Button>
        <Button onPress={() => setOverlay('edit')}>{texts.edit}</Button>
      </Actions>
      {!overlay && update.error && <Problem error={update.error} />}
      {overlay === 'on' && (
        <ConfirmDialog
          title={texts.turnOnTitle}
          action={texts.turnOn}
          write={{ ...update, mutate: () => turn(true) }}
          onClose={close}
        >
          <p>{texts.turnOnAdvice(count, formats.number(count))}</p>
        </ConfirmDialog>
      )}
      {overlay === 'edit' && (
        <RuleForm
          title={rule.key}
          rule={{ id, active, ...rule }}
          action={texts.save}
          write={{ ...update, mutate: update.mutate }}
          onClose={close}
        />
      )}
      {overlay === 'remove' && (
        <ConfirmDialog title={texts.removeTitle} action={texts.removeAction} write={remove} onClose={close}>
          <p>{texts.removeAdvice}</p>
        </ConfirmDialog>
      )}
    </>
  )
}

function Preview({ id }: { id: number }) {
  const texts = useMessages(messages)
  const formats = useFormats()
  const preview = useQuery(previewQuery(id))
  const found = preview.data
  const people = found?.items ?? []
  return (
    <Section title={texts.preview}>
      {preview.isPending && <Loading />}
      {preview.error && <Problem error={preview.error} onRetry={() => preview.refetch()} />}
      {found?.would_pause && <Notice kind="caution" title={texts.wouldPause} />}
      {found && found.count > 0 && <p>{texts.previewCount(found.count, formats.number(found.count))}</p>}
      {found?.count === 0 && <EmptyState title={texts.previewNone} />}
      {found && found.held > 0 && <p>{texts.previewHeld(found.held, formats.number(found.held))}</p>}
      {people.length > 0 && (
        <Table label={texts.preview} headers={[texts.person, texts.since, texts.takenFrom]}>
          {people.map(person => (
            <tr key={person.id}>
              <th scope="row">
                <EntityLink owner="people" id={person.id} externalId={person.external_id} />
              </th>
              <td>{formats.exactTime(person.entered_at)}</td>
              <td>{person.announced_for === null ? texts.notTold : formats.exactTime(person.announced_for)}</td>
            </tr>
          ))}
        </Table>
      )}
    </Section>
  )
}

function Runs({ id }: { id: number }) {
  const texts = useMessages(messages)
  const formats = useFormats()
  const runs = useQuery(runsQuery(id))
  const rows = runs.data ?? []
  return (
    <Section title={texts.history}>
      {runs.isPending && <Loading />}
      {runs.error && <Problem error={runs.error} onRetry={() => runs.refetch()} />}
      {runs.data && rows.length === 0 && <EmptyState title={texts.historyNone} />}
      {rows.length > 0 && (
        <Table label={texts.history} headers={[texts.day, numberHeader(texts.told), numberHeader(texts.done)]}>
          {rows.map(({ day, told, done }) => (
            <tr key={day}>
              <th scope="row">{day}</th>
              <td className={numberCell}>{formats.number(told)}</td>
              <td className={numberCell}>{formats.number(done)}</td>
            </tr>
          ))}
        </Table>
      )}
    </Section>
  )
}
