import t from 'tap'
import { Surveys } from '../../../src/broker/embedded/surveys.js'
import { cursorOver } from './wire.js'

const answer = (survey, text) => cursorOver(writer => writer.begin(1).u32(survey).string(text).end())

t.test('a survey ends when everybody has answered, each counted once', async t => {
  const surveys = new Surveys()
  const done = []
  const number = surveys.start('a', 7, ['a', 'b'])
  surveys.told('a', await answer(number, '1'), survey => done.push(survey))
  surveys.told('a', await answer(number, '1'), survey => done.push(survey))
  surveys.told('c', await answer(number, '3'), survey => done.push(survey))
  surveys.told('b', await answer(number + 1, '2'), survey => done.push(survey))
  t.same(done, [])
  surveys.told('b', await answer(number, '2'), survey => done.push(survey))
  t.match(done, [{ link: 'a', request: 7, answers: ['1', '2'], complete: true }])
  surveys.told('b', await answer(number, '2'), survey => done.push(survey))
  t.equal(done.length, 1)
})

t.test('who dies has nothing to tell; who fails to answer makes it incomplete', async t => {
  const surveys = new Surveys()
  const done = []
  const number = surveys.start('a', 7, ['a', 'b', 'c'])
  surveys.told('a', await answer(number, '1'), survey => done.push(survey))
  surveys.removeLink('b', survey => done.push(survey))
  t.same(done, [])
  surveys.told('c', await answer(number, ''), survey => done.push(survey))
  t.match(done, [{ answers: ['1'], complete: false }])

  surveys.start('a', 8, ['a'])
  surveys.removeLink('a', survey => done.push(survey))
  t.match(done[1], { request: 8, answers: [], complete: true })
})

t.test('nobody waits for ever: after five seconds it ends, incomplete', async t => {
  const surveys = new Surveys()
  const done = []
  const number = surveys.start('a', 7, ['a', 'b'])
  surveys.told('a', await answer(number, '1'), survey => done.push(survey))
  for (let second = 0; second < 5; second++) surveys.tick(survey => done.push(survey))
  t.same(done, [])
  surveys.tick(survey => done.push(survey))
  t.match(done, [{ answers: ['1'], complete: false }])
  surveys.told('b', await answer(number, '2'), survey => done.push(survey))
  t.equal(done.length, 1, 'a late answer is dropped')
})
