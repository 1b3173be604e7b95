"""Each defence is taken out of a copy of the source, once: a test that still passes then tests nothing."""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from sizes import Figure

ROOT = Path(__file__).parents[2]


class Defence(NamedTuple):
    """A line of the source, what stands in its place, and the test that has to fail."""

    what: str
    file: str
    line: str
    gone: str
    test: str


DEFENCES = [
    Defence(
        "a dataset's encoding is checked",
        "datasets/encode.py",
        "    if not math.isfinite(value) or value < least:\n",
        "    if value is None:\n",
        "datasets/test_several.py::test_a_forged_encoding_is_refused",
    ),
    Defence(
        "what is stored beside an encoding is checked",
        "datasets/extend.py",
        "_checked(data.encoding), Encoding",
        "data.encoding, Encoding",
        "datasets/test_several.py::test_a_forged_dataset_is_not_extended",
    ),
    Defence(
        "a dataset's account of its tables is checked",
        "datasets/import_report.py",
        "    except (KeyError, TypeError, ValueError, AttributeError, IndexError):",
        "    except ZeroDivisionError:",
        "datasets/test_several.py::test_a_forged_account_is_refused_in_a_sentence",
    ),
    Defence(
        "edges without a header are noticed",
        "datasets/edges.py",
        "    _check_header(table, source, nodes, given, options.dialect)\n",
        "",
        "datasets/test_sloppy.py::test_sloppy_tables[edges without a header]",
    ),
    Defence(
        "what may be the answer is left out",
        "datasets/roles.py",
        "    reason = may_be_the_answer(rows, column, role, y)\n",
        "    reason = None\n",
        "datasets/test_sloppy.py::test_sloppy_tables[a column that tells the class]",
    ),
    Defence(
        "no probability is shown that is not a number",
        "predict/predictions.py",
        "            if bad.any():",
        "            if False:",
        "predict/test_predictions.py::test_what_is_not_a_number_is_not_shown",
    ),
    Defence(
        "no two columns of predictions are equal",
        "predict/prediction_tables.py",
        'if c in COLUMNS or (c.startswith("p(") and c.endswith(")"))',
        "if c in COLUMNS",
        "predict/test_predictions.py::test_no_two_columns_are_called_the_same",
    ),
    Defence(
        "one class alone is no closed set",
        "predict/predictions.py",
        "        if len(self.classes) == 1 and (closed_set or cannot):",
        "        if False:",
        "predict/test_predictions.py::test_what_cannot_tell_members_does_not_claim_to",
    ),
    Defence(
        "files are replaced, not written over",
        "machine/files.py",
        'os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), mode)',
        "os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode)",
        "storage/test_io.py::test_a_failed_write_leaves_the_old_file_and_no_other",
    ),
    Defence(
        "half-written files are swept",
        "machine/files.py",
        "    for entry in os.scandir(directory) if can_lock() else ():",
        "    for entry in ():",
        "reliability/test_disk.py::test_a_finished_run_is_cleared_of_what_a_kill_left",
    ),
    Defence(
        "files being written are locked",
        "machine/files.py",
        "            lock(descriptor, wait=True)\n",
        "",
        "reliability/test_disk.py::test_a_part_that_is_being_written_is_left_alone",
    ),
    Defence(
        "a directory has one writer",
        "machine/files.py",
        "            lock(held, wait=False)\n",
        "            pass\n",
        "reliability/test_disk.py::test_two_trainings_in_one_directory",
    ),
    Defence(
        "the optimiser's state is resumed",
        "storage/checkpoint.py",
        "            tensor.copy_(saved[name])",
        "            pass",
        "reliability/test_crash.py::test_a_training_killed_at_random_ends_with_the_same_bits",
    ),
    Defence(
        "no pipe is replaced by a file",
        "machine/files.py",
        "    if path.exists() and not path.is_file():",
        "    if False:",
        "reliability/test_disk.py::test_something_else_where_a_file_should_be",
    ),
    Defence(
        "only regular files are read",
        "machine/files.py",
        "        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):",
        "        if False:",
        "reliability/test_disk.py::test_something_else_where_a_model_should_be",
    ),
    Defence(
        "checksum of the tensors",
        "storage/io.py",
        "        if check and hashlib",
        "        if False and hashlib",
        "reliability/test_files.py::test_every_flipped_bit_is_noticed",
    ),
    Defence(
        "checksum of the manifest",
        "storage/io.py",
        "    if not intact:",
        "    if False:",
        "reliability/test_files.py::test_every_flipped_bit_is_noticed",
    ),
    Defence(
        "shapes are compared before a network is made",
        "storage/checkpoint.py",
        "    need_shapes(learned, {",
        "    dict({",
        "test_train.py::test_shapes_are_compared_before_a_network_is_made",
    ),
    Defence(
        "a mask has a value for each node",
        "nodes.py",
        "    if mask.size != n:",
        "    if False:",
        "test_nodes.py::test_what_is_no_node_is_refused_by_the_arguments_name",
    ),
    Defence(
        "a node counts once in the support",
        "nodes.py",
        "        if not before or (several and label not in before):",
        "        if True:",
        "test_nodes.py::test_a_node_counts_once_in_the_support",
    ),
    Defence(
        "a refused training leaves no directory",
        "machine/files.py",
        "                remove_empty(made)\n",
        "",
        "cli/test_run.py::test_a_training_without_classes_to_choose_by_leaves_no_directory",
    ),
    Defence(
        "finite weights",
        "model/model_files.py",
        "        if not np.isfinite(array).all():",
        "        if False:",
        "reliability/test_files.py::test_tensors_with_a_right_checksum_that_are_not_the_models",
    ),
    Defence(
        "types of a manifest's fields",
        "estimator.py",
        "        check_model(meta)\n",
        "",
        "reliability/test_files.py::test_any_field_of_a_model_may_be_anything",
    ),
    Defence(
        "types of a method's options",
        "estimator.py",
        '            check_options(METHODS[source][0], meta["options"])',
        "            pass",
        "reliability/test_files.py::test_any_field_of_a_model_may_be_anything",
    ),
    Defence(
        "types of a dataset's fields",
        "storage/io.py",
        "        check_dataset(meta)\n",
        "",
        "reliability/test_files.py::test_any_field_of_a_dataset_may_be_anything",
    ),
    Defence(
        "an answer is a number",
        "model/fitted_method.py",
        "    if not np.isfinite(probability).all():",
        "    if False:",
        "reliability/test_files.py::test_an_answer_that_is_not_a_number_is_never_given",
    ),
    Defence(
        "powers of a temperature",
        "recognition/calibration.py",
        "np.exp(np.clip(power, -MAX_LOG_POWER, MAX_LOG_POWER))",
        "np.exp(power)",
        "reliability/test_files.py::test_a_forged_temperature_gives_no_answer_that_is_not_a_number",
    ),
    Defence(
        "prepared blocks are of the network",
        "represent/blocks.py",
        "    if not _is_of(graph, arrays):",
        "    if False:",
        "represent/test_blocks.py::test_a_strangers_blocks_are_refused",
    ),
    Defence(
        "sparse matrices are checked",
        "storage/packing.py",
        "    if indices.size and not 0 <= indices.min() <= indices.max() < shape[1]:",
        "    if False:",
        "reliability/test_files.py::test_datasets_with_a_right_checksum_and_wrong_content",
    ),
    Defence(
        "a run's Python file is named by who reads the run",
        "estimator.py",
        "        if method is None and source not in METHODS:",
        "        if False:",
        "methods/test_plugins.py::test_a_run_runs_nothing_unless_its_method_is_named",
    ),
    Defence(
        "compiled files are not believed",
        "methods/plugins.py",
        "    loader.get_code = ",
        "    _ = ",
        "methods/test_plugins.py::test_a_compiled_file_beside_it_is_not_run",
    ),
    Defence(
        "an interrupt during imports is quiet",
        "__main__.py",
        "        signal.signal(signal.SIGINT, _leave)\n    from",
        "        pass\n    from",
        "cli/test_shell.py::test_an_interrupt_during_imports_is_quiet",
    ),
    Defence(
        "a closed pipe is no bug",
        "cli/__init__.py",
        "        if isinstance(end.__context__, BrokenPipeError):",
        "        if False:",
        "cli/test_shell.py::test_a_reader_that_has_gone_is_told_nothing",
    ),
    Defence(
        "closed streams",
        "cli/__init__.py",
        "            os.open(os.devnull, os.O_RDWR)",
        "            pass",
        "cli/test_shell.py::test_the_place_of_a_closed_stream_stays_taken",
    ),
    Defence(
        "zip bombs",
        "datasets/npz.py",
        "    return inflated > max(FREE_INFLATION, MAX_INFLATION * packed)",
        "    return False",
        "reliability/test_files.py::test_no_bomb_goes_off",
    ),
    Defence(
        "lists in a manifest are counted",
        "storage/io.py",
        '    if text.count("[") + text.count("{") > MAX_BRACKETS:',
        "    if False:",
        "reliability/test_files.py::test_no_bomb_goes_off",
    ),
    Defence(
        "odd places in a zip file",
        "datasets/npz.py",
        "error.errno != errno.EINVAL",
        "True",
        "reliability/test_fuzz.py::test_broken_files_are_refused",
    ),
    Defence(
        "formulas in tables",
        "machine/sheets.py",
        '    return f"\'{cell}" if',
        "    return cell if",
        "reliability/test_outputs.py::test_no_table_holds_a_formula",
    ),
    Defence(
        "carriage returns in tables",
        "machine/sheets.py",
        "re.compile('[,\"\\r\\n]')",
        "re.compile('[,\"\\n]')",
        "reliability/test_outputs.py::test_no_table_holds_a_formula",
    ),
    Defence(
        "formulas in exports",
        "datasets/convert.py",
        "write_csv(_harmless(table), file)",
        "write_csv(table, file)",
        "reliability/test_outputs.py::test_no_table_holds_a_formula",
    ),
    Defence(
        "markup in reports",
        "report/page.py",
        "autoescape=True",
        "autoescape=False",
        "reliability/test_outputs.py::test_reports_escape_every_name",
    ),
    Defence(
        "LaTeX in names",
        "report/tables.py",
        '    return "".join(_LATEX.get(c, c) for c in " ".join(text.split()))',
        "    return text",
        "reliability/test_outputs.py::test_reports_escape_every_name",
    ),
    Defence(
        "control characters in messages",
        "cli/__init__.py",
        'visible(" ".join(message.split()))',
        '" ".join(message.split())',
        "reliability/test_outputs.py::test_no_control_character_reaches_a_terminal",
    ),
    Defence(
        "control characters in JSON",
        "cli/output.py",
        '_UNSEEN.sub(lambda match: f"\\\\u{ord(match[0]):04x}", text)',
        "text",
        "reliability/test_outputs.py::test_no_control_character_reaches_a_terminal",
    ),
    Defence(
        "the equations: Eq. (9)",
        "engine/episode.py",
        "        centrality[i] = np.log(degree[i] + eps)",
        "        centrality[i] = np.log(degree[i] + 2 * eps)",
        "reliability/test_numbers.py::test_loops_written_from_the_equations_give_the_same",
    ),
    Defence(
        "a full disk is the machine's fault",
        "cli/__init__.py",
        "        sys.exit(3)",
        "        sys.exit(1)",
        "reliability/test_disk.py::test_a_file_size_limit",
    ),
    Defence(
        "the token",
        "serve/auth.py",
        "        if not self._knows(headers):",
        "        if False:",
        "serve/test_safety.py::test_every_route_but_live_needs_the_token",
    ),
    Defence(
        "the whole token",
        "serve/auth.py",
        "            return hmac.compare_digest(given.strip(), self._token)",
        "            return self._token.startswith(given.strip())",
        "serve/test_safety.py::test_every_route_but_live_needs_the_token",
    ),
    Defence(
        "foreign Hosts",
        "serve/auth.py",
        "        if host not in self.rules.hosts and not self._is_own_address(host, scope):",
        "        if False:",
        "reliability/test_service.py::test_foreign_hosts_on_every_route",
    ),
    Defence(
        "pages of other origins",
        "serve/auth.py",
        "        if origin is not None and origin",
        "        if False and origin",
        "reliability/test_service.py::test_pages_of_others_cannot_change_anything",
    ),
    Defence(
        "forms of other pages",
        "serve/auth.py",
        '            if headers.get(b"content-type", b"").split(b";")[0].strip().lower() != b"application/json":',
        "            if False:",
        "reliability/test_service.py::test_pages_of_others_cannot_change_anything",
    ),
    Defence(
        "a header that is given twice",
        "serve/auth.py",
        "            if any(given.count(name) > 1 for name in ONCE):",
        "            if False:",
        "serve/test_safety.py::test_no_cors_and_no_second_host",
    ),
    Defence(
        "bodies of more than a megabyte",
        "serve/auth.py",
        "                    if len(body) > BODY:",
        "                    if False:",
        "serve/test_safety.py::test_a_body_is_at_most_a_megabyte",
    ),
    Defence(
        "slow bodies",
        "serve/auth.py",
        "            async with asyncio.timeout(self.rules.body_seconds):",
        "            async with asyncio.timeout(None):",
        "serve/test_process.py::test_who_is_slow_with_a_body_is_told_so",
    ),
    Defence(
        "slow headers",
        "serve/server.py",
        "            self._deadline = self.loop.call_later(seconds, self.transport.abort)",
        "            self._deadline = self.loop.call_later(seconds, id, 0)",
        "serve/test_process.py::test_who_is_slow_with_a_header_is_cut_off",
    ),
    Defence(
        "readers that do not read",
        "serve/server.py",
        "            self._reader_deadline = self.loop.call_later(limits.write_seconds, self.transport.abort)",
        "            pass",
        "serve/test_process.py::test_who_does_not_read_is_cut_off_and_keeps_nobody_waiting",
    ),
    Defence(
        "classes are counted",
        "serve/edits.py",
        "    if name not in classes and len(classes) >= CLASSES:",
        "    if False:",
        "serve/test_state.py::test_there_are_at_most_200_classes",
    ),
    Defence(
        "a full queue refuses",
        "serve/admission.py",
        "        if self._refuse():",
        "        if False:",
        "serve/test_process.py::test_a_full_queue_says_when_to_come_again",
    ),
    Defence(
        "SIGTERM answers what was accepted",
        "serve/server.py",
        "        loop.call_later(limits.leaving_seconds, end)",
        "        listener.close(), end()",
        "reliability/test_service.py::test_sigterm_under_load",
    ),
    Defence(
        "classes outlive a kill",
        "serve/session.py",
        "state=self.store.commit(edit.state, edit.change, edit.who))",
        "state=edit.state)",
        "reliability/test_service.py::test_a_killed_service_comes_back_with_every_class",
    ),
    Defence(
        "a node is in one class",
        "serve/answers.py",
        "        if other is not None:",
        "        if False:",
        "serve/test_dialogue.py::test_answers_are_all_kept_or_none",
    ),
    Defence(
        "a class keeps an example or a description",
        "serve/answers.py",
        "    if not state.classes[name] and name not in state.descriptions:",
        "    if False:",
        "serve/test_dialogue.py::test_answers_are_all_kept_or_none",
    ),
    Defence(
        "only so much can be undone",
        "serve/journal.py",
        "        self.undoable: deque[int] = deque(maxlen=UNDO)",
        "        self.undoable: deque[int] = deque()",
        "serve/test_dialogue.py::test_only_so_many_changes_can_be_undone",
    ),
    Defence(
        "no formula in a file of claims",
        "serve/claim_list.py",
        "            return csv_text([names, *cells]).encode()",
        "            return chr(10).join(map(','.join, [names, *cells])).encode()",
        "serve/test_dialogue.py::test_every_file_says_what_the_page_says",
    ),
    Defence(
        "no share of too few nodes",
        "serve/claims.py",
        "    if nodes < CHECKABLE:",
        "    if nodes < 1:",
        "serve/test_answers.py::test_nothing_is_said_of_fewer_than_ten",
    ),
    Defence(
        "a wide interval is no equality",
        "experiment/results.py",
        '"equal" if e else "unsure"',
        '"equal"',
        "experiment/test_results.py::test_a_wide_interval_is_no_equality",
    ),
    Defence(
        "names are text in the page",
        "serve/static/dom.js",
        "  made.append(...children",
        '  const markup = (x) => (typeof x === "string" ? document.createRange().createContextualFragment(x) : x);\n'
        "  made.append(...children.map(markup)",
        "serve/test_page.py::test_a_name_is_text_and_never_markup",
    ),
    Defence(
        "scripts of others in the page",
        "serve/auth.py",
        '    (b"content-security-policy", POLICY.encode()),\n',
        "",
        "serve/test_safety.py::test_every_answer_is_fenced_in",
    ),
    Defence(
        "bugs are told without their insides",
        "serve/app.py",
        "        return as_json(BUG, 500)",
        "        return as_json({'error': str(__)}, 500)",
        "serve/test_safety.py::test_a_bug_is_told_without_its_insides_and_logged_escaped",
    ),
    Defence(
        "a description has a limit",
        "serve/bodies.py",
        "Sentence = Annotated[str, Field(max_length=MAX_LENGTH), AfterValidator(legible)]",
        "Sentence = Annotated[str, AfterValidator(legible)]",
        "serve/test_bodies.py::test_so_much_and_no_more",
    ),
    Defence(
        "control characters in a description",
        "naming.py",
        "    if CONTROL.search(text):",
        "    if False:",
        "serve/test_bodies.py::test_nothing_is_guessed",
    ),
    Defence(
        "a class that nothing stands for",
        "serve/bodies.py",
        "        if not self.support and self.description is None:",
        "        if False:",
        "serve/test_descriptions.py::test_what_is_no_description_is_refused_before_it_is_read",
    ),
    Defence(
        "a new description is not read on the event loop",
        "serve/session.py",
        " + compared",
        "",
        "serve/test_descriptions.py::test_a_new_description_keeps_nobody_waiting",
    ),
    Defence(
        "rows of the state that were edited",
        "serve/store.py",
        '                if f"{state.digest:064x}" != digest:',
        "                if False:",
        "serve/test_store.py::test_a_file_that_was_edited_gets_a_sentence",
    ),
    Defence(
        "rows of the journal that are missing",
        "serve/store.py",
        '        if about["head"] != chain:',
        "        if False:",
        "serve/test_store.py::test_a_file_that_was_edited_gets_a_sentence",
    ),
    Defence(
        "views and triggers in a state file",
        "serve/store.py",
        "        if sorted(ours, key=repr) != sorted(wanted, key=repr):",
        "        if False:",
        "serve/test_store.py::test_a_file_that_was_edited_gets_a_sentence",
    ),
    Defence(
        "a number has one form",
        "serve/changes.py",
        "        return str(int(name)) if self.numbered and name.isdecimal() else name",
        "        return name",
        "serve/test_state.py::test_a_number_has_one_form",
    ),
    Defence(
        "what cannot be answered by is not kept",
        "serve/snapshot.py",
        "            self.answerer()",
        "            pass",
        "serve/test_state.py::test_what_cannot_be_answered_by_is_not_kept",
    ),
    Defence(
        "classes that cannot be told apart",
        "serve/edits.py",
        "    if why := alike(name, classes):",
        '    if why := "":',
        "serve/test_state.py::test_classes_that_cannot_be_told_apart_are_refused",
    ),
    Defence(
        "columns that nobody knows",
        "serve/rows.py",
        "    if unknown := [name for name in given if name not in names]:",
        "    if unknown := [][:0]:",
        "serve/test_new_nodes.py::test_a_row_that_does_not_fit_is_refused_by_name",
    ),
    Defence(
        "true is not 1",
        "serve/rows.py",
        "        if isinstance(value, bool) and column != self.id:",
        "        if False:",
        "serve/test_new_nodes.py::test_true_is_not_1",
    ),
    Defence(
        "rows are counted against lines",
        "datasets/text_tables.py",
        "    if swallowed or watched.quotes % 2 or watched.has_nul:",
        "    if False:",
        "datasets/test_text_tables.py::test_stray_quotes_swallow_no_rows",
    ),
    Defence(
        "stray quotes in small tables",
        "machine/delimited.py",
        "            if reader.line_num > last + 1 and not multiline:",
        "            if False:",
        "storage/test_io.py::test_a_broken_table_is_named_with_its_place",
    ),
    Defence(
        "columns are counted before they are read",
        "machine/delimited.py",
        "    if lines and max(map(lines[0].count, separators)) >= MAX_COLUMNS:",
        "    if False:",
        "datasets/test_text_tables.py::test_too_many_columns_are_refused_before_they_are_read",
    ),
    Defence(
        "cells of a row are counted before they are read",
        "machine/delimited.py",
        "        if line.count(separator) > 100 * MAX_COLUMNS:",
        "        if False:",
        "reliability/test_files.py::test_no_bomb_goes_off",
    ),
    Defence(
        "encodings are encodings of text",
        "machine/delimited.py",
        "    if not plain:",
        "    if False:",
        "machine/test_delimited.py::test_what_is_no_encoding_of_text_is_refused",
    ),
    Defence(
        "words for a missing value are no classes",
        "datasets/columns.py",
        "lambda texts: pc.if_else(self._are_missing(texts), None, texts)",
        "lambda texts: texts",
        "datasets/test_columns.py::test_words_for_a_missing_value_are_no_classes",
    ),
    Defence(
        "floats that cannot tell ids apart",
        "datasets/columns.py",
        "        if pc.any(inexact).as_py():",
        "        if False:",
        "datasets/test_columns.py::test_floats_that_cannot_tell_ids_apart_are_refused",
    ),
    Defence(
        "keys that are there twice",
        "datasets/text_tables.py",
        "    if len(found) < len(pairs):",
        "    if False:",
        "datasets/test_text_tables.py::test_json_that_says_two_things_is_refused",
    ),
    Defence(
        "control characters in names of classes",
        "naming.py",
        "    if not name.isprintable():",
        "    if False:",
        "serve/test_safety.py::test_what_is_too_much_or_wrong_is_refused_in_a_sentence",
    ),
]


def limited() -> None:
    """What goes off without its defence must not take the machine with it."""
    resource.setrlimit(resource.RLIMIT_AS, (8 << 30, 8 << 30))


def test_every_defence_names_one_line_and_a_test() -> None:
    """Quick, so that an entry cannot outlive what it is about."""
    for defence in DEFENCES:
        assert (ROOT / "src" / "fewnode" / defence.file).read_text().count(defence.line) == 1, defence.what
        file, _, name = defence.test.partition("::")
        assert name.partition("[")[0] in (Path(__file__).parents[1] / file).read_text(), defence.what


@pytest.mark.check
def test_every_defence_is_missed_when_it_is_gone(tmp_path: Path, figure: Figure) -> None:
    missed = []
    for defence in DEFENCES:
        shutil.rmtree(tmp_path / "src", ignore_errors=True)
        shutil.copytree(ROOT / "src", tmp_path / "src")
        path = tmp_path / "src" / "fewnode" / defence.file
        text = path.read_text()
        assert text.count(defence.line) == 1, f"{defence.what}: the line is no longer there"
        path.write_text(text.replace(defence.line, defence.gone))
        command = [sys.executable, "-m", "pytest", "-x", "-q", "-m", "not soak", ROOT / "tests" / defence.test]
        environment = {**os.environ, "PYTHONPATH": str(tmp_path / "src")}
        environment.pop("FEWNODE_FIGURES", None)
        found = subprocess.run(
            list(map(str, command)),
            cwd=ROOT,
            env=environment,
            capture_output=True,
            text=True,
            preexec_fn=None if "test_page" in defence.test else limited,  # a browser asks for more than it uses
        )
        if "Error" not in found.stdout or found.returncode == 0 or "no tests ran" in found.stdout:
            missed.append((defence.what, found.stdout[-500:]))
    assert missed == []
    figure("defences", f"{len(DEFENCES)} taken out, one at a time: a test failed each time")
