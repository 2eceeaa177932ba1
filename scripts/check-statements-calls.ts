import { join, relative } from 'node:path'
import { pathToFileURL } from 'node:url'
import * as ast from 'typescript/unstable/ast'
import { API, type Checker, SignatureKind, SymbolFlags, type Type, TypeFlags } from 'typescript/unstable/sync'
import type { Statement } from '../src/db/db.ts'
import { lineOf, root, type Violation } from './source.ts'

/**
 * A type as far as the check compares it. `kinds` are those of its values: `string`, `number`, `boolean`, `bigint`, `null`,
 * `undefined`, `array`, `any`, else the name of a class or `object`. `element` is the type of the elements of its arrays.
 */
export type TsType = { text: string; kinds: Set<string>; element?: TsType | undefined }

/** A field of a row. If the rows are a union, there is one of each of its types, with the kind `any` if the type has no such field. */
export type Field = { name: string; type: TsType; isOptional: boolean }

/** A call that runs one of `statements`. `isOpen`: more values may follow. `fields` are absent if the call has no type for its rows. */
export type Call = Omit<Violation, 'message'> & {
  statements: Statement[]
  values: TsType[]
  isOpen: boolean
  fields: Field[] | undefined
}

/** Finds the calls of queries in the files whose paths begin with one of `prefixes`, without tests. `unknown` has those that are not seen. */
export async function findCalls(prefixes: string[]): Promise<{ calls: Call[]; unknown: Violation[] }> {
  const api = new API({ cwd: root })
  try {
    const { program, checker } = api.updateSnapshot({ openProjects: [join(root, 'tsconfig.json')] }).getProjects()[0]!
    const isWanted = (file: string) => prefixes.some(prefix => file.startsWith(join(root, prefix)))
    const files = program.getSourceFileNames().filter(file => isWanted(file) && !/\.test\.tsx?$/.test(file))
    return await new Finder(checker).find(files.map(file => program.getSourceFile(file)!))
  } finally {
    api.close()
  }
}

/** The calls of the functions around a query, as far as its statement depends on them. */
type Callers = ReadonlyMap<ast.Node, ast.CallExpression>

class Finder {
  readonly #checker: Checker
  /** The calls that may pass a statement, by the function that they call. */
  #callsOf = new Map<ast.Node | undefined, ast.CallExpression[]>()
  readonly #calls: Call[] = []
  readonly #unknown: Violation[] = []

  constructor(checker: Checker) {
    this.#checker = checker
  }

  async find(files: ast.SourceFile[]) {
    const calls: ast.CallExpression[] = []
    const visit = (node: ast.Node): undefined => {
      if (ast.isCallExpression(node)) calls.push(node)
      node.forEachChild(visit)
    }
    for (const file of files) visit(file)
    const passed = calls.flatMap(call => call.arguments.map(argument => ({ call, argument })))
    const types = this.#checker.getTypeAtLocation(passed.map(({ argument }) => argument))
    const passing = new Set(passed.filter((_, index) => this.#isStatement(types[index]!)).map(({ call }) => call))
    const relevant = calls.filter(call => passing.has(call) || /(query|copy)$/.test(call.expression.getText()))
    const calledBy = (call: ast.Node) => this.#checker.getResolvedSignature(call)?.declaration?.resolve()
    this.#callsOf = Map.groupBy(relevant, calledBy)
    for (const [called, some] of this.#callsOf)
      for (const call of some)
        if (called && isQuery(called)) await this.#add(call, new Map())
        else if (/\/@types\/pg\//.test(called?.getSourceFile().fileName ?? ''))
          this.#unknown.push({ ...placeOf(call), message: 'the statement has no name' })
    return { calls: this.#calls, unknown: this.#unknown }
  }

  #isStatement(type: Type): boolean {
    const names = type.isObjectType() ? this.#checker.getPropertiesOfType(type).map(({ name }) => name) : []
    return names.toSorted().join() === 'name,text'
  }

  /** Adds a query, once for each way in which the functions around it are called, as far as its statement depends on that. */
  async #add(query: ast.CallExpression, callers: Callers): Promise<void> {
    try {
      const [statement, values] = query.arguments
      const statements = (await this.#evaluate(statement!, callers)) as Statement[]
      const passed = this.#elementsOf(values, callers)
      this.#calls.push({ ...placeOf(query), statements, ...passed, fields: this.#fieldsOf(query) })
    } catch (error) {
      // The cause is the function whose calls decide.
      const { message, cause: called } = error as Error & { cause?: ast.Node }
      if (called && this.#isForwarder(called)) return
      const calls = (called && this.#callsOf.get(called)) ?? []
      for (const call of calls) await this.#add(query, new Map([...callers, [called!, call]]))
      if (calls.length === 0) this.#unknown.push({ ...placeOf(query), message })
    }
  }

  /** Whether a function is itself the `query` of a database: what it is called with is found at those calls. */
  #isForwarder(called: ast.Node): boolean {
    const type = ast.isArrowFunction(called) ? this.#checker.getContextualType(called) : undefined
    const [signature] = type ? this.#checker.getSignaturesOfType(type, SignatureKind.Call) : []
    const declaration = signature?.declaration?.resolve()
    return declaration !== undefined && isQuery(declaration)
  }

  /** The declaration of a name, behind imports. */
  #declarationOf(node: ast.Node): ast.Node | undefined {
    const symbol = ast.isIdentifier(node) ? this.#checker.getSymbolAtLocation(node) : undefined
    const target = symbol && symbol.flags & SymbolFlags.Alias ? this.#checker.getAliasedSymbol(symbol) : symbol
    return target?.valueDeclaration?.resolve()
  }

  /** The argument of a parameter, if its function is among those whose call is known. */
  #argumentOf(declaration: ast.Node | undefined, callers: Callers): ast.Expression | undefined {
    if (!declaration || !ast.isParameterDeclaration(declaration)) return undefined
    const { parameters } = declaration.parent as ast.FunctionDeclaration
    return callers.get(declaration.parent)?.arguments[parameters.indexOf(declaration)]
  }

  /** The values that an expression may have. Throws an Error if they cannot be told. */
  async #evaluate(node: ast.Node, callers: Callers): Promise<unknown[]> {
    if (ast.isStringLiteral(node) || ast.isNoSubstitutionTemplateLiteral(node)) return [node.text]
    if (ast.isConditionalExpression(node))
      return [...(await this.#evaluate(node.whenTrue, callers)), ...(await this.#evaluate(node.whenFalse, callers))]
    if (ast.isPropertyAccessExpression(node))
      return (await this.#evaluate(node.expression, callers)).map(value => (value as never)[node.name.text])
    if (ast.isElementAccessExpression(node))
      return (await this.#evaluate(node.expression, callers)).flatMap(value => Object.values(value as object))
    if (ast.isCallExpression(node) && node.expression.getText() === 'statement') {
      const [[name] = [], [text] = []] = await Promise.all(node.arguments.map(part => this.#evaluate(part, callers)))
      return [{ name, text }]
    }
    const declaration = this.#declarationOf(node)
    const argument = this.#argumentOf(declaration, callers)
    if (argument) return this.#evaluate(argument, callers)
    if (declaration && ast.isParameterDeclaration(declaration))
      throw new Error('no call of the function around passes a constant statement', { cause: declaration.parent })
    const loop = declaration?.parent?.parent
    if (declaration && loop && ast.isForOfStatement(loop) && declaration.parent === loop.initializer)
      return (await this.#evaluate(loop.expression, callers)).flatMap(value => Object.values(value as object))
    if (!declaration || !ast.isVariableDeclaration(declaration) || !isConstant(declaration))
      throw new Error(`the statement is ${node.getText()}, no constant`)
    const exported = (await import(pathToFileURL(declaration.getSourceFile().fileName).href)) as Record<string, unknown>
    const name = declaration.name.getText()
    const isTopLevel = ast.isSourceFile(declaration.parent.parent.parent)
    return isTopLevel && name in exported ? [exported[name]] : this.#evaluate(declaration.initializer!, callers)
  }

  /** The types of the elements of an array, up to a spread of unknown length. */
  #elementsOf(node: ast.Expression | undefined, callers: Callers): { values: TsType[]; isOpen: boolean } {
    if (!node) return { values: [], isOpen: true }
    if (ast.isArrayLiteralExpression(node)) {
      const parts = node.elements.map(element => {
        if (ast.isSpreadElement(element)) return this.#elementsOf(element.expression, callers)
        const argument = this.#argumentOf(this.#declarationOf(element), callers)
        return { values: [this.#serialize(this.#checker.getTypeAtLocation(argument ?? element)!)], isOpen: false }
      })
      const open = parts.findIndex(({ isOpen }) => isOpen)
      const known = parts.slice(0, open < 0 ? undefined : open + 1)
      return { values: known.flatMap(({ values }) => values), isOpen: open >= 0 }
    }
    const declaration = this.#declarationOf(node)
    const isNamed = declaration && ast.isVariableDeclaration(declaration) && isConstant(declaration)
    const value = isNamed ? declaration.initializer : this.#argumentOf(declaration, callers)
    if (value && (!isNamed || ast.isArrayLiteralExpression(value))) return this.#elementsOf(value, callers)
    const type = this.#checker.getTypeAtLocation(node)!
    const elements = this.#checker.isTupleType(type) ? this.#checker.getTypeArguments(type as never) : undefined
    return { values: elements?.map(element => this.#serialize(element)) ?? [], isOpen: !elements }
  }

  /** The fields of the rows in the `Promise<R[]>` that a query returns. */
  #fieldsOf(query: ast.CallExpression): Field[] | undefined {
    const checker = this.#checker
    const argumentsOf = (type: Type | undefined) => (type?.isTypeReference() ? checker.getTypeArguments(type) : [])
    const [rows] = argumentsOf(checker.getReturnTypeOfSignature(checker.getResolvedSignature(query)!))
    const [row] = argumentsOf(rows)
    if (!row || checker.getIndexInfosOfType(row).length > 0) return undefined
    if (row.isTypeParameter()) throw new Error('the type of the rows is a parameter of the function around')
    const properties = (row.isUnionType() ? row.getTypes() : [row]).map(
      each => new Map(checker.getPropertiesOfType(each).map(property => [property.name, property])),
    )
    const names = new Set(properties.flatMap(each => [...each.keys()]))
    return [...names].flatMap(name =>
      properties.map(each => {
        const property = each.get(name)
        const type = property
          ? this.#serialize(checker.getTypeOfSymbol(property)!)
          : { text: 'any', kinds: new Set(['any']) }
        return { name, type, isOptional: !property || (property.flags & SymbolFlags.Optional) !== 0 }
      }),
    )
  }

  #serialize(type: Type): TsType {
    const text = this.#checker.typeToString(type)
    if (type.isUnionType() && !(type.flags & TypeFlags.Boolean)) {
      const members = type.getTypes().map(each => this.#serialize(each))
      const element = members.find(member => member.element)?.element
      return { text, kinds: new Set(members.flatMap(({ kinds }) => [...kinds])), element }
    }
    if (!this.#checker.isArrayLikeType(type)) return { text, kinds: new Set([kindOf(type)]) }
    const [first, ...others] = this.#checker.getTypeArguments(type as never)
    return { text, kinds: new Set(['array']), element: others.length === 0 ? this.#serialize(first!) : undefined }
  }
}

const flagsOfKinds: Record<string, number> = {
  null: TypeFlags.Null,
  undefined: TypeFlags.Undefined | TypeFlags.Void,
  string: TypeFlags.StringLike,
  number: TypeFlags.NumberLike,
  boolean: TypeFlags.BooleanLike,
  bigint: TypeFlags.BigIntLike,
  any: TypeFlags.Any | TypeFlags.Unknown | TypeFlags.Never | TypeFlags.Instantiable,
}

function kindOf(type: Type): string {
  const kind = Object.keys(flagsOfKinds).find(each => type.flags & flagsOfKinds[each]!)
  return kind ?? type.getSymbol()?.name ?? 'object'
}

function placeOf(node: ast.Node) {
  const { fileName, text } = node.getSourceFile()
  return { path: relative(root, fileName), line: lineOf(text, node.getStart()) }
}

const isConstant = ({ initializer, parent }: ast.VariableDeclaration) =>
  initializer !== undefined && (parent.flags & ast.NodeFlags.Const) !== 0

/** Whether a function is `query` or `copy` of a database, a transaction or a snapshot. */
const isQuery = (called: ast.Node) =>
  ast.isMethodSignatureDeclaration(called) &&
  /\/src\/db\/(db|snapshot)\.ts$/.test(called.getSourceFile().fileName) &&
  /^(query|copy)$/.test(called.name.getText())
