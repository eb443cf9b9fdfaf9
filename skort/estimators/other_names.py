"""
The names that scikit-learn and other libraries have for parameters, arguments and attributes,
as tables: each name leads to what has the same role here.
"""

from collections.abc import Mapping, Sequence


def _by_name(names: Mapping[str, str]) -> dict[str, str]:
    """Return name -> sentence for sentence -> names."""
    return {name: sentence for sentence, listed in names.items() for name in listed.split()}


#: Parameter -> its names elsewhere, which take the same values.
PARAMETERS: Mapping[str, Sequence[str]] = {
    "eta0": (
        *("lr", "learning_rate_init", "eta", "step_size", "init_lr", "initial_lr", "base_lr"),
        "initial_learning_rate",
    ),
    "max_iter": ("epochs", "n_epochs", "num_epochs", "max_epochs", "n_iter", "nb_epoch"),
    "tol": ("min_delta", "tolerance"),
    "n_iter_no_change": ("patience",),
    "validation_fraction": (
        *("validation_split", "val_split", "validation_size", "val_size", "val_fraction"),
        "test_size",
    ),
    "random_state": ("seed", "random_seed"),
    "loss": ("criterion", "loss_fn", "loss_function", "objective", "cost", "cost_function"),
    "optimizer": ("optim", "optimiser"),
    "estimator": ("base_estimator", "model", "module"),
    "penalty": ("regularization", "regularizer", "kernel_regularizer"),
    "alpha": ("l2_regularization", "l2", "l2_reg", "reg_lambda", "lambda_", "reg"),
    "max_grad_norm": (
        *("clip_norm", "clipnorm", "grad_clip", "clip_grad", "clip_grad_norm"),
        *("gradient_clip_val", "gradient_clipping", "gradient_clip", "clip", "clip_gradients"),
    ),
    "batch_size": ("bs", "batch", "minibatch_size"),
    "average": ("swa", "ema"),
    "standardize": ("normalize", "scale", "scaling"),
    "device": ("gpu", "use_gpu"),
    "n_jobs": (
        *("nthread", "n_threads", "num_threads", "thread_count", "num_workers", "workers"),
        "n_workers",
    ),
    "learning_rate": ("scheduler", "lr_scheduler", "lr_schedule"),
    "quantile": ("q", "tau", "quantile_alpha"),
    "epsilon": ("delta",),
    "scoring": ("metric", "metrics", "eval_metric", "monitor"),
}
#: The values that these names stand for.
VALUES = {"gpu": "cuda", "use_gpu": "cuda"}
#: Parameter of the model inside -> its names elsewhere; the sentence shows how it is given.
_INSIDE = {
    "A network inside has hidden_layer_sizes: estimator=MLP{kind}(hidden_layer_sizes=(64,))": (
        "layers hidden_layers n_hidden hidden_size hidden_units hidden_dims hidden_dim layer_sizes "
        "num_layers n_layers units neurons width depth"
    ),
    'A network inside has activation: estimator=MLP{kind}(activation="relu")': (
        "activation_function nonlinearity act"
    ),
    "The model inside has fit_intercept: estimator={linear}(fit_intercept=False)": (
        "bias use_bias intercept add_intercept"
    ),
}
_THRESHOLD = "FixedThresholdClassifier of scikit-learn, around the classifier, has it"
#: What does the work of a parameter that other libraries have.
ELSEWHERE = _by_name(
    {
        **_INSIDE,
        _THRESHOLD: "threshold pos_label thresh cutoff",
        "class_weight has the weight of each label": (
            "scale_pos_weight pos_weight is_unbalance auto_class_weights sampler"
        ),
        "trainable names the weights to train; all others are frozen": (
            "freeze frozen freeze_layers frozen_layers requires_grad"
        ),
        "fit takes sample_weight; class_weight of OrtSGDClassifier has the weight of each label": (
            "weight weights"
        ),
        "decision_function(X) of a classifier gives the raw scores": "raw_score output_margin raw",
        "predict_proba(X) of a classifier gives the probabilities": "return_proba proba",
        "It is a parameter of skort.networks.TabularNetwork": "dropout",
        'partial_fit follows recent rows; learning_rate="constant" follows a fast drift': (
            "forgetting forgetting_factor fading_factor half_life drift_detector"
        ),
        "skort.networks.TabularNetwork has dropout": "dropout_rate drop_rate p_dropout",
        "They are beta_1 and beta_2 of skort.optimizers.Adam": "betas",
        "It is epsilon of skort.optimizers.Adam": "eps adam_epsilon",
        "skort.optimizers.OnnxOptimizer takes an update of your own": "amsgrad rho decay",
        'Did you mean optimizer="nesterov"?': "nesterovs_momentum",
        'Did you mean penalty="l1", with its strength as alpha?': "reg_alpha l1 l1_reg",
        "alpha is the strength of the penalty; C of a model inside is an inverse strength": "C",
        "No loss has it. alpha keeps the scores small, and skort.objective.Loss takes a loss of "
        "your own": "label_smoothing",
        "Trees have no gradient, and skort trains linear models and networks": (
            "n_estimators max_depth min_child_weight subsample colsample_bytree tree_method "
            "num_leaves max_leaf_nodes min_samples_leaf min_samples_split max_bins booster "
            "num_boost_round"
        ),
        "Did you mean early_stopping=True, with the number of epochs as n_iter_no_change?": (
            "early_stopping_rounds n_iter_without_progress"
        ),
        "early_stopping=True restores the best weights": "restore_best_weights save_best",
        "y has the labels": "num_class n_classes num_classes",
        'device is "cpu" or "cuda"': "provider providers execution_provider accelerator cuda",
        "solver chooses the part of ONNX Runtime that makes the steps": "backend",
        'dtype is "float32" or "float64"': "precision mixed_precision amp fp16 bf16 half",
        "to_onnx has target_opset": "opset target_opset opset_version",
        "save_onnx(path) writes the ONNX file": "path file filename",
        "skl2onnx.to_onnx(model, X) has it, and converts a fitted estimator, too": (
            "initial_types zipmap options"
        ),
        "callbacks=[skort.callbacks.Checkpoint(path)] writes one": (
            "checkpoint checkpoint_path checkpoint_dir"
        ),
        "callbacks=[skort.callbacks.MLflowLogger()] writes it down": "log_dir logger",
        "callbacks takes objects with this method": "on_epoch_end on_fit_begin on_fit_end",
        "learning_rate takes skort.schedules.Warmup": (
            "warmup warmup_steps warmup_ratio warm_up warmup_epochs warmup_updates num_warmup_steps"
        ),
        "fit takes X_val and y_val": "eval_set eval_sets validation_data valid_data valid_set",
        "max_iter is the number of epochs, n_rows / batch_size steps each": (
            "steps n_steps num_steps max_steps total_steps iterations num_iterations n_iterations"
        ),
        "An epoch uses each row once": "steps_per_epoch",
        "A larger batch_size does the same": (
            "accumulate_grad_batches gradient_accumulation_steps"
        ),
        "A short last batch makes a shorter step": "drop_last",
        "fit_batches takes a function that gives changed rows in each pass": "augment mixup",
        "Networks begin by Glorot's rule, and a FrozenEstimator or an ONNX model at its own "
        "weights": "init weight_init kernel_initializer",
        "An ONNX model from another tool may have such layers, and is trained as estimator": (
            "batch_norm batchnorm layer_norm"
        ),
        'loss="log_loss" and loss="modified_huber" give probabilities': "probability",
        "loss=skort.objective.OneVsRestLogLoss() trains each class against the rest": "multi_class",
        "GridSearchCV and cross_val_score have it": "cv n_splits",
        "FrozenEstimator(fitted) begins at the weights of a fitted model, warm_start=True at those "
        "of the last fit": "xgb_model init_model init_score pretrained initial_epoch",
        "An OneHotEncoder in a pipeline, or an OrdinalEncoder before a TabularNetwork, takes "
        "categories": "cat_features categorical_feature categorical_features enable_categorical",
        "The splitter of a search takes groups; fit does not": "groups",
        "early_stopping=True holds out rows, validation_fraction of them": "train_split",
        "Kernels are not trained: Nystroem or RBFSampler, in a pipeline before the model, "
        "approximates one": "gamma kernel degree coef0",
    }
)

#: Arguments of `fit` and `to_onnx` -> their names elsewhere.
ARGUMENTS: Mapping[str, Sequence[str]] = {
    "X_val, y_val": ("eval_set", "validation_data", "valid_data"),
    "sample_weight": ("sample_weights", "weight", "weights"),
    "target_opset": ("opset", "opset_version"),
}

#: What has the same role here as an attribute of other models.
ATTRIBUTES = _by_name(
    {
        "weights_ has all weights by name": (
            "coefs_ intercepts_ weights get_weights state_dict parameters params_ layers "
            "named_parameters count_params num_parameters"
        ),
        "set_weights(weights) changes them": "load_state_dict",
        "it is a parameter of the model, estimator": "hidden_layer_sizes",
        "to_sklearn() returns the fitted model, weights_ its weights": "estimator_ regressor_",
        "to_sklearn() returns the fitted pipeline": "named_steps steps",
        "to_sklearn() returns scikit-learn's model, which has it": (
            "n_layers_ n_outputs_ out_activation_"
        ),
        "onnx_ is the fitted model, to_sklearn() returns it as scikit-learn has it": "model_ model",
        "coef_ has the coefficients of a linear model": "feature_importances_ dual_coef_",
        "onnx_ is the fitted model as ONNX": "onnx_model_ onnx_model onnx onnx_graph_ session_",
        "n_iter_ is the number of epochs, t_ that of updates": "n_epochs_ n_epochs epochs_ n_iter",
        "save_onnx(path) writes the ONNX file": "export export_onnx",
        "save_onnx(path) writes the ONNX file; pickle or joblib keep the estimator": (
            "save save_model dump to_pickle"
        ),
        "pickle or joblib read an estimator; to train an ONNX file, give onnx.load(path) as "
        "estimator": "load load_model load_onnx from_onnx from_pretrained",
        "score(X, y) is the accuracy, or R2": "evaluate",
        "predict(X) gives the predictions": "run infer forward predict_classes",
        "OrtSGDClassifier has it": "predict_proba predict_log_proba decision_function",
        "plan_ has the decisions of the fit, weights_ the weights": "summary plan report describe",
        "skort.plotting.LossCurveDisplay.from_estimator(model) draws it": (
            "plot_loss_curve plot plot_history"
        ),
        "loss_curve_ has the objective of each epoch, history_ all records": (
            "loss_history_ losses_ loss_history train_loss_ train_losses_ loss_curve"
        ),
        "history_ has the records of all epochs": "history evals_result evals_result_",
        "validation_scores_ has the score of each epoch, best_validation_score_ the best": (
            "validation_loss_ val_loss_ validation_losses_ val_losses_ validation_score_ "
            "validation_scores val_scores_ best_validation_loss_ best_iteration_ best_iteration "
            "best_epoch_"
        ),
        "a search has it; its best_estimator_ is such an estimator": (
            "best_score_ best_params_ best_estimator_ best_index_ cv_results_"
        ),
        "eta0_ is the first learning rate, history_ has that of each epoch": "lr_ learning_rate_",
        "standardization_ has the means and scales of the training": (
            "scaler_ mean_ scale_ standardization"
        ),
        "classes_ has the labels": "n_classes_ classes",
        "n_features_in_ is their number, feature_names_in_ has the names of a DataFrame": (
            "n_features_ n_features feature_names_ feature_names"
        ),
        "partial_fit(X, y) trains on more rows": "train_on_batch learn_one update finetune",
        "fit_batches(batches) trains on batches": "fit_generator",
        "parameters of the constructor say how to train; set_params changes them": "compile",
        "fit trains and predict predicts: there are no modes": "train eval",
        'the parameter device="cuda" trains on a GPU': "cuda to gpu",
        "the parameter trainable names the weights to train": "freeze unfreeze",
        "the parameter callbacks takes them": "add_callback",
        "clone(model) is not fitted": "reset reset_parameters init_weights",
        "onnxruntime.quantization takes the file of save_onnx": "quantize",
    }
)
