import { definitionWrite } from '../../organizations/change-definitions.ts'
import { dataOf, type Route, route } from '../../route/route.ts'
import { Type } from '../../values/json-schema.ts'
import { answerPreview, answerRule, answerRules, answerRuns, createRule, deleteRule, patchRule } from './rules.ts'
import { newRule, preview, type RuleBody, type RulePatch, rule, ruleList, rulePatch, runList } from './schema.ts'

const path = '/v1/retention-rules'
const row = { scope: 'people:erase', tag: 'Lifetimes' } as const
const byId = { ...row, path: `${path}/{id}`, params: { id: 'number' } } as const

/** The route table of retention rules. */
export function retentionRuleRoutes(): Route[] {
  return [
    definitionWrite<RuleBody>({
      ...row,
      method: 'POST',
      path,
      operationId: 'createRetentionRule',
      summary: 'Create a retention rule',
      description:
        'A person who has been in the segment for `after_days` without a break is erased or deleted, a week after the event ' +
        '`person.retention_due`. The rule does nothing until it is `active`. See docs/lifetimes.md.',
      body: newRule,
      answer: rule,
      successes: { 201: 'Created.' },
      refusals: { 409: 'duplicate_entry' },
      handle: async call => {
        const data = await createRule(call)
        return { status: 201, data, headers: { Location: `${path}/${data.id}` } }
      },
    }),
    route({
      ...row,
      method: 'GET',
      path,
      operationId: 'listRetentionRules',
      summary: 'List the retention rules',
      answer: ruleList,
      handle: answerRules,
    }),
    route({
      ...byId,
      method: 'GET',
      operationId: 'getRetentionRule',
      summary: 'Read a retention rule',
      answer: rule,
      handle: answerRule,
    }),
    definitionWrite<RulePatch>({
      ...byId,
      method: 'PATCH',
      operationId: 'patchRetentionRule',
      summary: 'Change, pause or resume a retention rule',
      description:
        '`active: false` pauses it, and `active: true` lets it go on, also if it has stopped itself. Whatever changes who is erased or deleted ' +
        'begins anew to tell of people, so that each has a week again.',
      body: rulePatch,
      answer: rule,
      refusals: { 409: 'duplicate_entry' },
      handle: dataOf(patchRule),
    }),
    definitionWrite({
      ...byId,
      method: 'DELETE',
      operationId: 'deleteRetentionRule',
      summary: 'Delete a retention rule',
      answer: Type.Literal(true),
      handle: dataOf(deleteRule),
    }),
    route({
      ...byId,
      method: 'GET',
      path: `${path}/{id}/preview`,
      operationId: 'previewRetentionRule',
      summary: 'List the people whom a retention rule would take today',
      description: 'Also of a rule that is not active. The token also needs `people:read`.',
      answer: preview,
      handle: answerPreview,
    }),
    route({
      ...byId,
      method: 'GET',
      path: `${path}/{id}/runs`,
      operationId: 'listRetentionRuns',
      summary: 'List what a retention rule has done in the last year, by day',
      answer: runList,
      handle: answerRuns,
    }),
  ]
}
